import {
  Fault,
  jsonText,
  parseTopicId,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
  type TopicId,
} from "../kernel/index.ts";
import type { AgentOptions } from "./agent.ts";
import { askRole, architectureEvent } from "./architectures/role-call.ts";

/** Something that came in. */
export interface InformationItem {
  /** Who published or sent it; `null`: someone outside. */
  readonly from: string | null;
  readonly body: JsonValue;
}

export interface InformationOptions {
  /** The topics it follows, as `type/source`. */
  readonly sources: readonly string[];
  /** Where it publishes what it made of them. */
  readonly topic: string;
  /** What is made of the items that came in; a model's summary unless told. Nothing is published of `null` or an empty text. */
  readonly aggregate?: (items: readonly InformationItem[]) => JsonValue | Promise<JsonValue>;
}

/** The input by which it begins to follow its sources. */
export const startInput = "start";

/**
 * An agent that follows topics, makes one thing of what came in and publishes it. What comes while it is at work waits for its next
 * activation, which has it all together: returning is waiting for the next.
 */
export function information<Options extends InformationOptions>(
  options: Options,
): Omit<Options, keyof InformationOptions> & Required<Pick<AgentOptions, "architecture" | "inbox">> {
  const { sources, topic, aggregate, ...rest } = options;
  if (sources.length === 0)
    throw new Fault("invalid_argument", "an information agent needs topics to follow: sources is empty");
  const followed = [...new Set(sources)].map(topicOf);
  const published = topicOf(topic);
  if (followed.includes(published))
    throw new Fault(
      "invalid_argument",
      `${topic} is among the sources and is published to: it would hear itself for ever. Publish to another topic`,
    );
  return { ...rest, inbox: "together", architecture: new Information(followed, published, aggregate) };
}

function topicOf(text: string): TopicId {
  parseTopicId(text);
  return text as TopicId;
}

class Information implements Architecture {
  readonly name = "information";
  readonly requiresModel: boolean;
  readonly #sources: readonly TopicId[];
  readonly #topic: TopicId;
  readonly #aggregate: InformationOptions["aggregate"];

  constructor(sources: readonly TopicId[], topic: TopicId, aggregate: InformationOptions["aggregate"]) {
    this.#sources = sources;
    this.#topic = topic;
    this.#aggregate = aggregate;
    this.requiresModel = aggregate === undefined;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { ctx } = deps;
    // Messages started it, and are all of its input; else someone asked it, who may want it to start.
    const isMail = ctx.input === null;
    if (!isMail) {
      for (const topic of this.#sources) await ctx.follow(topic);
      yield architectureEvent(this.name, "followed", { topics: this.#sources });
      if (prompt === startInput) {
        session.output = `follows ${this.#sources.join(", ")}`;
        return;
      }
    }
    const items = isMail ? (JSON.parse(prompt) as InformationItem[]) : [{ from: null, body: prompt }];
    const made = await this.#made(session, deps, items);
    session.output = jsonText(made);
    if (session.output === "") return;
    await ctx.emit(this.#topic, made);
    yield architectureEvent(this.name, "published", { topic: this.#topic, items: items.length });
  }

  declaredWorkers(): Readonly<Record<string, never>> {
    return {};
  }

  #made(session: AgentSession, deps: Dependencies, items: readonly InformationItem[]): Promise<JsonValue> {
    const aggregate = this.#aggregate;
    if (aggregate !== undefined) return deps.ctx.step("aggregate", async () => aggregate(items));
    const list = items.map(({ from, body }) => `- ${from ?? "outside"}: ${jsonText(body)}`);
    return askRole(session, deps, {
      role: "summarizer",
      instructions:
        session.instructions || "Summarise what came in, in a few sentences. Leave nothing important out.",
      prompt: `What came in:\n${list.join("\n")}`,
    });
  }
}
