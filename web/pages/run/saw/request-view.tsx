import {
  visibleLine,
  visibleText,
  type ChatMessage,
  type ContentPart,
  type Recorded,
  type RecordedRequest,
  type ToolSpec,
} from "../../../../src/kernel/index.ts";
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { counted, grouped, oneLine, plain } from "../../../base/format.ts";
import { argumentNames, rawRequest } from "../../../model/request-parts.ts";
import {
  counterOf,
  fullText,
  partText,
  sharesOfRequest,
  type RequestShare,
  type SizedRequest,
} from "../../../model/request-shares.ts";
import { CopyButton } from "../../../parts/copy-button.tsx";
import { Icon, type IconName } from "../../../parts/icon.tsx";

/** Number of characters of a text that are shown until a person asks for the rest. A model may read megabytes. */
const mostShown = 4_000;
/** Maximum number of shown lines, and number of additional lines that are still shown instead of being cut. */
const [mostLines, fewLines] = [14, 3];
/** Number of characters of the raw request that are drawn. Copy has all of them. */
const mostRaw = 200_000;
/** Number of messages at the end of a conversation that are drawn first. */
const mostMessages = 60;

/** Shows how much of the context window the request needed, and how much of it came from the cache. */
export function ContextBar({ request }: { readonly request: SizedRequest }): JSX.Element {
  const { contextWindow, usage } = request;
  const shares = sharesOfRequest(request);
  const used = usage?.inputTokens ?? shares.reduce((total, { tokens }) => total + tokens, 0);
  const whole = Math.max(1, contextWindow ?? used, used);
  const cached = usage?.cacheReadTokens ?? 0;
  const percent = Math.round((used / (contextWindow ?? whole)) * 100);
  const cachedPercent = used === 0 ? 0 : Math.round((cached / used) * 100);
  const known =
    contextWindow === null ? "The size of the context window is not known." : `${percent} % of the window.`;
  return (
    <>
      <div
        class="context-bar"
        role="img"
        aria-label={`${counted(used, "token")}. ${known} ${cachedPercent} % from the cache.`}
      >
        {shares.map(({ key, tokens }) => (
          <i key={key} class={`ctx-${key}`} style={{ width: `${(tokens / whole) * 100}%` }} />
        ))}
      </div>
      <div class="cached-line" aria-hidden="true">
        <i style={{ width: `${(cached / whole) * 100}%` }} />
      </div>
      <p class="row between wrap">
        <span>
          <b>{grouped(used)}</b>{" "}
          {contextWindow === null
            ? "tokens; the size of the context window is not known"
            : `of ${grouped(contextWindow)} tokens, ${percent} %`}
          {usage === null && " (estimated)"}
        </span>
        {usage !== null && <span class="dim">{cachedPercent} % from the cache</span>}
      </p>
      <dl class="context-parts">
        {shares.map(({ key, name, tokens }) => (
          <div key={key}>
            <dt>
              <i class={`ctx-${key}`} />
              {name}
            </dt>
            <dd>{grouped(tokens)}</dd>
          </div>
        ))}
        {contextWindow !== null && (
          <div>
            <dt>
              <i class="ctx-left" />
              Left for the answer
            </dt>
            <dd>{grouped(Math.max(0, contextWindow - used))}</dd>
          </div>
        )}
      </dl>
      <p class="label">
        The parts are estimated from their texts
        {usage === null ? ", and so is their sum." : "; the provider reports the sum."}
      </p>
    </>
  );
}

interface CardProps {
  readonly icon: IconName;
  readonly title: string;
  readonly about: string;
  readonly side: string;
  readonly children: ComponentChildren;
}

function Card({ icon, title, about, side, children }: CardProps): JSX.Element {
  return (
    <section class="saw-card" aria-label={title}>
      <header>
        <Icon name={icon} />
        <h2>{title}</h2>
        <span class="mid cut">{about}</span>
        <span class="grow" />
        <span class="label">{side}</span>
      </header>
      {children}
    </section>
  );
}

/** Shown in place of a part that cannot be shown. */
function NotShown({
  part,
}: {
  readonly part: Exclude<Recorded<unknown>, { state: "recorded" }>;
}): JSX.Element {
  const words =
    part.state === "unrecorded"
      ? "Not recorded: an earlier version of reeve made this call."
      : part.reason === "session"
        ? "Erased: the session that held it was deleted."
        : "Erased by retention.";
  return <p class="not-shown">{words}</p>;
}

/** The size of a part, as the bar above it shows it. */
function sizeWords(request: SizedRequest, key: RequestShare["key"]): string {
  const tokens = sharesOfRequest(request).find((share) => share.key === key)?.tokens ?? 0;
  return `about ${counted(tokens, "token")}`;
}

export function Instructions({ request }: { readonly request: SizedRequest }): JSX.Element {
  const { instructions, instructionsHash } = request;
  const text = instructions.state === "recorded" ? instructions.value : "";
  return (
    <Card
      icon="runs"
      title="Instructions"
      about={instructionsHash === null ? "" : `hash ${instructionsHash.slice(0, 12)}`}
      side={text === "" ? "" : sizeWords(request, "instructions")}
    >
      {instructions.state !== "recorded" ? (
        <NotShown part={instructions} />
      ) : text === "" ? (
        <p class="dim">This call had no instructions.</p>
      ) : (
        <Text text={text} />
      )}
    </Card>
  );
}

export function Tools({ request }: { readonly request: SizedRequest }): JSX.Element {
  const { tools } = request;
  const list = tools.state === "recorded" ? tools.value : [];
  return (
    <Card
      icon="terminal"
      title="Tools"
      about={list.length === 0 ? "" : `${grouped(list.length)}, with their schemas`}
      side={list.length === 0 ? "" : sizeWords(request, "tools")}
    >
      {tools.state !== "recorded" ? (
        <NotShown part={tools} />
      ) : list.length === 0 ? (
        <p class="dim">The model was offered no tools.</p>
      ) : (
        list.map((tool) => <ToolRow key={tool.name} tool={tool} />)
      )}
    </Card>
  );
}

function ToolRow({ tool }: { readonly tool: ToolSpec }): JSX.Element {
  const schema = JSON.stringify(tool.inputSchema, null, 2);
  return (
    <details class="saw-tool">
      <summary>
        <code class="cut">{visibleLine(tool.name)}</code>
        <span class="cut">{visibleLine(tool.description)}</span>
        <span class="label cut">{visibleLine(argumentNames(tool))}</span>
      </summary>
      <p class="mid">{visibleText(tool.description)}</p>
      <div class="raw">
        <CopyButton text={schema} label={`Copy the schema of ${tool.name}`} />
        <pre tabIndex={0}>{cutText(visibleText(schema), mostRaw)}</pre>
      </div>
    </details>
  );
}

/** Shows the conversation as the model read it. With `from`, only the messages from this index on. */
export function SeenMessages({
  request,
  from,
}: {
  readonly request: SizedRequest;
  readonly from: number | null;
}): JSX.Element {
  const { messages, ephemeralMessages } = request;
  const [isWhole, setWhole] = useState(false);
  const count = counterOf(request);
  const all = messages.state === "recorded" ? messages.value : [];
  const start = from ?? (isWhole ? 0 : Math.max(0, all.length - mostMessages));
  const about =
    from === null
      ? grouped(all.length)
      : `${grouped(all.length - from)} of ${grouped(all.length)}, new since the turn before`;
  return (
    <Card icon="chat" title="Messages" about={messages.state === "recorded" ? about : ""} side="">
      {messages.state !== "recorded" ? (
        <NotShown part={messages} />
      ) : (
        <>
          {from === null && start > 0 && (
            <p>
              <button class="button small" onClick={() => setWhole(true)}>
                Show {counted(start, "earlier message")}
              </button>
            </p>
          )}
          {all.slice(start).map((message, at) => (
            <MessageRow key={start + at} message={message} count={count} />
          ))}
          {all.length === start && <p class="dim">No message.</p>}
        </>
      )}
      {ephemeralMessages !== null && ephemeralMessages > 0 && (
        <p class="not-shown">
          {counted(ephemeralMessages, "ephemeral message")}. Their text is never stored.
        </p>
      )}
    </Card>
  );
}

const roles: Readonly<Record<ChatMessage["role"], string>> = {
  system: "system",
  user: "user",
  assistant: "model",
  tool: "result",
};

/** Counts the tokens of a text. */
type Counter = (text: string) => number;

function MessageRow({
  message,
  count,
}: {
  readonly message: ChatMessage;
  readonly count: Counter;
}): JSX.Element {
  const { role, content } = message;
  const parts: readonly ContentPart[] =
    typeof content === "string" ? [{ type: "text", text: content }] : content;
  return (
    <div class="saw-message">
      <span class="label">{roles[role]}</span>
      <div class="grow">
        {parts.map((part, at) => (
          <Part key={at} part={part} />
        ))}
      </div>
      <span class="label">{grouped(count(fullText(message)))}</span>
    </div>
  );
}

function Part({ part }: { readonly part: ContentPart }): JSX.Element {
  if (part.type === "tool_call")
    return (
      <details class="saw-call">
        <summary>
          <Icon name="tool" />
          <b>{visibleLine(part.toolName)}</b>
          <code class="cut">{oneLine(part.input, 300)}</code>
        </summary>
        <Text text={plain(part.input)} isCode />
      </details>
    );
  if (part.type === "tool_result")
    return (
      <details class="saw-call" open={partText(part).length < 400}>
        <summary>
          <b>{visibleLine(part.toolName)}</b>
          {part.isError && <span class="label bad">failed</span>}
        </summary>
        <Text text={partText(part)} isCode />
      </details>
    );
  if (part.type === "reasoning")
    return (
      <details class="saw-call">
        <summary class="dim">Reasoning</summary>
        <Text text={part.text} />
      </details>
    );
  return part.type === "text" ? <Text text={part.text} /> : <p class="dim">{partText(part)}</p>;
}

/**
 * Shows a text as it was sent, with hidden characters made visible. A long text is cut until a person asks for the
 * rest.
 */
function Text({ text, isCode = false }: { readonly text: string; readonly isCode?: boolean }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? text : shortened(text);
  const rest = text.slice(shown.length);
  return (
    <>
      <pre class={isCode ? "" : "said"} {...(isCode && { tabIndex: 0 })}>
        {visibleText(shown)}
      </pre>
      {rest !== "" && (
        <button class="button small" onClick={() => setWhole(true)}>
          {rest.length > mostShown
            ? `Show ${grouped(rest.length)} more characters`
            : `Show ${counted(rest.split("\n").length, "more line", "more lines")}`}
        </button>
      )}
    </>
  );
}

/**
 * Returns the beginning of a text: its first lines, with a limited number of characters. If only a few lines would
 * be cut, the whole text is returned.
 */
function shortened(text: string): string {
  const start = text.slice(0, mostShown);
  const lines = start.split("\n");
  return lines.length > mostLines + fewLines ? `${lines.slice(0, mostLines).join("\n")}\n` : start;
}

export function RawRequest({ request }: { readonly request: RecordedRequest }): JSX.Element {
  const raw = rawRequest(request);
  return (
    <section class="saw-card raw" aria-label="Raw request">
      <CopyButton text={raw} label="Copy the request" />
      <pre tabIndex={0}>{cutText(visibleText(raw), mostRaw)}</pre>
    </section>
  );
}

function cutText(text: string, most: number): string {
  return text.length <= most
    ? text
    : `${text.slice(0, most)}\n… ${grouped(text.length - most)} more characters`;
}
