import { writeSync } from "node:fs";
import { setKittyProtocolActive, StdinBuffer, type Terminal } from "@earendil-works/pi-tui";

const pasteOn = "\u{1b}[?2004h";
const pasteOff = "\u{1b}[?2004l";
/**
 * Sequence that asks the terminal to report keys with their modifiers and to say which reports it supports. Its
 * last part asks a question that every terminal answers.
 */
const keysOn = "\u{1b}[>7u\u{1b}[?u\u{1b}[c";
const keysOff = "\u{1b}[<u";
const modifiersOn = "\u{1b}[>4;2m";
const modifiersOff = "\u{1b}[>4;0m";
const cursorOn = "\u{1b}[?25h";
const cursorOff = "\u{1b}[?25l";

/** Sequence that restores the original key handling and look of a terminal. */
const restored = `\u{1b}[?2026l\u{1b}[0m${keysOff}${modifiersOff}${pasteOff}${cursorOn}`;

/**
 * Milliseconds that the program waits after a lone Escape for the rest of a key sequence. Over a network the rest
 * may arrive later.
 */
const escapeMs = process.env["SSH_CONNECTION"] === undefined ? 20 : 100;

/** The sequences that are written when the program takes the terminal, and when it returns it. */
interface TerminalLook {
  readonly begin: string;
  readonly end: string;
}

/**
 * The terminal of this process. It has its own function for output, because stdout of a command is reserved for
 * data, and all other output of the process must not reach the screen.
 */
export class NodeTerminal implements Terminal {
  readonly #write: (text: string) => boolean;
  readonly #onGone: () => void;
  readonly #look: TerminalLook;
  #buffer: StdinBuffer | undefined;
  #hasKitty = false;
  #isOn = false;
  #stopListening: () => void = () => undefined;

  constructor(
    write: (text: string) => boolean,
    onGone: () => void,
    look: TerminalLook = { begin: "", end: "" },
  ) {
    this.#write = write;
    this.#look = look;
    this.#onGone = onGone;
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    const { stdin, stdout } = process;
    this.#isOn = true;
    stdin.setRawMode(true);
    stdin.setEncoding("utf8");
    this.#buffer = new StdinBuffer({ escapeTimeout: escapeMs });
    this.#buffer.on("data", (key: string) => {
      if (!this.#isAnswer(key)) onInput(key);
    });
    this.#buffer.on("paste", (text: string) => onInput(`\u{1b}[200~${text}\u{1b}[201~`));
    const onData = (data: string | Buffer): void => this.#buffer?.process(String(data));
    const restore = (): void => this.#restoreNow();
    stdin.on("data", onData).on("end", this.#onGone).on("error", this.#onGone);
    stdout.on("resize", onResize).on("error", this.#onGone);
    process.on("exit", restore);
    this.#stopListening = () => {
      stdin.off("data", onData).off("end", this.#onGone).off("error", this.#onGone);
      stdout.off("resize", onResize).off("error", this.#onGone);
      process.off("exit", restore);
    };
    stdin.resume();
    this.write(`${this.#look.begin}${pasteOn}${keysOn}`);
  }

  stop(): void {
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#stopListening();
    this.#buffer?.destroy();
    this.#hasKitty = false;
    setKittyProtocolActive(false);
    // An error of a terminal that is gone must not end the process.
    process.stdin.once("error", () => undefined);
    this.write(`${restored}${this.#look.end}`);
    process.stdin.pause();
    setRaw(false);
  }

  async drainInput(): Promise<void> {
    // Keys that arrive after `stop` belong to the next program.
  }

  write(data: string): void {
    if (data !== "") this.#write(data);
  }

  get columns(): number {
    return Math.max(1, process.stdout.columns || 80);
  }

  get rows(): number {
    return Math.max(1, process.stdout.rows || 24);
  }

  get kittyProtocolActive(): boolean {
    return this.#hasKitty;
  }

  moveBy(lines: number): void {
    if (lines !== 0) this.write(lines > 0 ? `\u{1b}[${lines}B` : `\u{1b}[${-lines}A`);
  }

  hideCursor(): void {
    this.write(cursorOff);
  }

  showCursor(): void {
    this.write(cursorOn);
  }

  clearLine(): void {
    this.write("\u{1b}[K");
  }

  clearFromCursor(): void {
    this.write("\u{1b}[J");
  }

  clearScreen(): void {
    this.write("\u{1b}[2J\u{1b}[H");
  }

  setTitle(title: string): void {
    this.write(`\u{1b}]0;${title}\u{7}`);
  }

  setProgress(): void {
    // Terminals show the progress of an agent no better than the status line does.
  }

  /**
   * Whether the data is the terminal's answer to the question about its keys, and not a key that the person
   * pressed.
   */
  #isAnswer(data: string): boolean {
    if (!data.startsWith("\u{1b}[?")) return false;
    const answer = data.slice(3);
    const flags = /^(?<flags>\d+)u$/u.exec(answer)?.groups?.["flags"];
    if (flags !== undefined) {
      this.#hasKitty = flags !== "0";
      setKittyProtocolActive(this.#hasKitty);
      return true;
    }
    if (!/^[\d;]*c$/u.test(answer)) return false;
    if (!this.#hasKitty) this.write(modifiersOn);
    return true;
  }

  /**
   * Restores the terminal synchronously, because the process ends, perhaps by an error, and later output would be
   * lost.
   */
  #restoreNow(): void {
    try {
      writeSync(process.stdout.fd, `\r\n${restored}${this.#look.end}`);
    } catch {
      // The terminal is gone, so there is nothing to restore.
    }
    setRaw(false);
  }
}

function setRaw(isRaw: boolean): void {
  try {
    process.stdin.setRawMode(isRaw);
  } catch {
    // The terminal is gone.
  }
}
