import type { Readable } from "node:stream";

/** Who writes the lines of a chat and reads its answers. */
interface Peer {
  readonly lines: Readable;
  /** Resolves when everything that was written has arrived, or cannot arrive. Returns whether it has. */
  readonly isReading: () => Promise<boolean>;
}

/** The parts of the process that a command may use. Data goes to stdout, everything else to stderr. */
export interface Terminal {
  /** Writes a line of data to stdout. The promise settles when the next line can be written. */
  out(line: string): Promise<void>;
  /** Writes a line for the user to stderr. */
  say(line: string): void;
  /** Writes a part of a line of data to stdout. */
  put(text: string): void;
  /** Whether a person reads the data as it is written. */
  readonly isWatched: boolean;
  /** Width of the terminal of stdout in characters. Absent if stdout is not a terminal. */
  readonly columns?: number;
  /** Whether there is a terminal at which a person can be asked. */
  readonly canAsk: boolean;
  /**
   * Asks a question. Resolves to `null` if the person leaves without an answer (Ctrl-C, Ctrl-D), and to `undefined` if
   * there is no terminal. `signal` withdraws the question, which then resolves to `null`.
   */
  ask(question: string, signal?: AbortSignal): Promise<string | null | undefined>;
  /**
   * Shows a line below the output until the next call or output replaces it. An empty text removes it. Absent if no
   * person sees stderr.
   */
  readonly status?: (line: string) => void;
  /** Reads stdin to its end; empty if nothing is piped in. */
  input(): Promise<string>;
  /** The other side of a chat in lines. If absent, it is stdin and stdout of this process. */
  readonly peer?: Peer;
  /**
   * Says that work is in progress which cannot be ended, such as a request to a server that does not answer. The process then
   * ends after the command without waiting for it. If absent, nothing ends the process.
   */
  readonly abandonWork?: () => void;
  /** Calls back when the person interrupts the command. The returned function stops listening. */
  onInterrupt(callback: () => void): () => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Names and texts of agents, models and users must not control the terminal, nor deceive the person who decides. */
export { visibleLine as printable, visibleText as shownText } from "../../../kernel/index.ts";
