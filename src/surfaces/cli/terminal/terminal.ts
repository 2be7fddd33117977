import type { Readable } from "node:stream";

/** The other side of a line-based chat: it writes the lines and reads the answers. */
interface Peer {
  readonly lines: Readable;
  /** Resolves when all written output has arrived, or can no longer arrive. Returns whether it has arrived. */
  readonly isReading: () => Promise<boolean>;
}

/** The parts of the process that a command may use. Data is written to stdout, everything else to stderr. */
export interface Terminal {
  /** Writes a line of data to stdout. The promise settles when the next line can be written. */
  out(line: string): Promise<void>;
  /** Writes a line for the user to stderr. */
  say(line: string): void;
  /** Writes a part of a line of data to stdout. */
  put(text: string): void;
  /** Whether a person reads the data while it is written. */
  readonly isWatched: boolean;
  /** Width of the terminal of stdout in characters. Absent if stdout is not a terminal. */
  readonly columns?: number;
  /** Whether a person can be asked at a terminal. */
  readonly canAsk: boolean;
  /**
   * Asks a question. Resolves to `null` if the person leaves without an answer (Ctrl-C, Ctrl-D), and to `undefined` if
   * there is no terminal. `signal` withdraws the question, which then resolves to `null`.
   */
  ask(question: string, signal?: AbortSignal): Promise<string | null | undefined>;
  /**
   * Shows a line below the output until the next call or output replaces it. An empty text removes it. Absent if
   * stderr is not shown to a person.
   */
  readonly status?: (line: string) => void;
  /** Reads stdin to its end. Empty if stdin is a terminal. */
  input(): Promise<string>;
  /** The other side of a line-based chat. If absent, stdin and stdout of this process are used. */
  readonly peer?: Peer;
  /**
   * Says that work is in progress which cannot be ended, such as a request to a server that does not answer. The process then
   * ends after the command without waiting for it. If absent, nothing ends the process.
   */
  readonly abandonWork?: () => void;
  /** Registers a callback for interrupts by the person. The returned function removes it. */
  onInterrupt(callback: () => void): () => void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * Functions that make texts of agents, models and users safe for the terminal: the texts must not control the
 * terminal, nor deceive the person who decides.
 */
export { visibleLine as printable, visibleText as shownText } from "../../../kernel/index.ts";
