import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useKeys } from "../../base/keys.ts";
import { errorText } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import { readFiles, type Attached } from "../../model/attached.ts";
import { Icon } from "../../parts/icon.tsx";

interface ComposerProps {
  readonly agentId: string;
  /** Sends the message. Returns whether it was accepted, so that a refused text stays. */
  readonly onSend: (text: string, attached: readonly Attached[]) => Promise<boolean>;
  /** Whether the agent works. What is sent then steers it. */
  readonly isBusy: boolean;
  readonly onStop?: () => void;
  readonly children?: ComponentChildren;
}

/** Where a person writes. Enter sends, Shift+Enter starts a line. Stop and Send are both visible. */
export function Composer({ agentId, onSend, isBusy, onStop, children }: ComposerProps): JSX.Element {
  const [text, setText] = useState("");
  const [attached, setAttached] = useState<readonly Attached[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  const isEmpty = text.trim() === "" && attached.length === 0;
  const isOff = isOffline.value;
  const stop = isOff ? undefined : onStop;
  const send = async (): Promise<void> => {
    if (isOff || isEmpty) return;
    if (!(await onSend(text, attached))) return;
    setText("");
    setAttached([]);
  };
  const attach = async (files: FileList | null): Promise<void> => {
    try {
      const read = await readFiles(files);
      setAttached((old) => [...old, ...read]);
      setProblem(null);
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  useKeys(stop === undefined ? {} : { Escape: stop });
  return (
    <div class="composer">
      {children}
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <div class="box">
        <textarea
          aria-label="Message"
          placeholder={
            isBusy ? `Write to ${agentId}. While it works, this steers it.` : `Write to ${agentId}.`
          }
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") stop?.();
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void send();
          }}
        />
        <div class="row">
          <button class="icon-button" aria-label="Attach files" onClick={() => picker.current?.click()}>
            <Icon name="clip" />
          </button>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files"
            onChange={(event) => void attach(event.currentTarget.files)}
          />
          <span class="chip">{agentId}</span>
          {attached.map(({ name }) => (
            <button
              key={name}
              class="chip live"
              aria-label={`Remove ${name}`}
              onClick={() => setAttached(attached.filter((each) => each.name !== name))}
            >
              {name} <Icon name="close" />
            </button>
          ))}
          <span class="grow" />
          {onStop !== undefined && (
            <button class="button" disabled={isOff} onClick={onStop}>
              Stop <kbd>Esc</kbd>
            </button>
          )}
          <button class="button primary" disabled={isOff || isEmpty} onClick={() => void send()}>
            Send
          </button>
        </div>
      </div>
    </div>
  );
}
