import type { Socket } from "node:net";
import { Fault } from "../../../kernel/index.ts";
import { MessageBuffer } from "../message-buffer.ts";
import { readAuthority, type Authority } from "./authority.ts";
import { padding, Request } from "./request.ts";
import { parseSetup, type Screen, type ServerSetup } from "./server-setup.ts";

/** Address of an X display. */
interface DisplayAddress {
  /** Name as the caller wrote it, such as `:0`. */
  readonly name: string;
  /** Number of the display, by which the authority file lists it. */
  readonly number: string;
  readonly screen: number;
  /** Sockets to try, in order. */
  readonly sockets: readonly ({ readonly path: string } | { readonly host: string; readonly port: number })[];
}

/** Parses the name of a display as in the variable `DISPLAY`: `:0`, `:0.1`, `host:0` or `/path/to/socket:0`. */
function displayAddress(name: string): DisplayAddress {
  const [, host = "", number = "", screen = "0"] =
    /^(?:\w+\/(?=[^/]*:))?(.*):(\d+)(?:\.(\d+))?$/u.exec(name) ?? [];
  if (number === "")
    throw new Fault(
      "invalid_argument",
      `invalid X display ${JSON.stringify(name)}: use :NUMBER or HOST:NUMBER, such as :0`,
    );
  return { name, number, screen: Number(screen), sockets: socketsOf(host, number) };
}

function socketsOf(host: string, number: string): DisplayAddress["sockets"] {
  if (host.startsWith("/")) return [{ path: `${host}:${number}` }, { path: host }];
  if (host !== "" && host !== "unix") return [{ host, port: 6000 + Number(number) }];
  const path = `/tmp/.X11-unix/X${number}`;
  // Linux servers also listen on an abstract address, and only there if the folder could not be created.
  return process.platform === "linux" ? [{ path }, { path: `\0${path}` }] : [{ path }];
}

/** A request that waits for its reply. */
interface PendingRequest {
  readonly sequence: number;
  readonly resolve: (reply: Buffer) => void;
  readonly reject: (error: Fault) => void;
}

const errorNames = [
  "", "Request", "Value", "Window", "Pixmap", "Atom", "Cursor", "Font", "Match", "Drawable", "Access", "Alloc",
  "Colormap", "GContext", "IDChoice", "Name", "Length", "Implementation",
]; // prettier-ignore

const getInputFocus = 43;
/** Maximum size of one reply, in bytes: an image of 8,192 by 8,192 pixels. */
const maxReplyBytes = 32 + 8_192 * 8_192 * 4;

/** A client of an X server. It sends requests and receives their replies in order. Events are ignored. */
export class X11Connection {
  /** Name of the display, such as `:0`. */
  readonly display: string;
  readonly setup: ServerSetup;
  readonly screen: Screen;
  readonly #socket: Socket;
  readonly #pending: PendingRequest[] = [];
  readonly #input: MessageBuffer;
  readonly #answerMs: number;
  #sequence = 0;
  #closedBy: Fault | undefined;

  private constructor(
    address: DisplayAddress,
    setup: ServerSetup,
    socket: Socket,
    input: MessageBuffer,
    answerMs: number,
  ) {
    const screen = setup.screens[address.screen];
    if (screen === undefined)
      throw new Fault(
        "not_found",
        `${address.name} does not exist: the display has ${setup.screens.length} screens, numbered from 0`,
      );
    this.display = address.name;
    this.setup = setup;
    this.screen = screen;
    this.#socket = socket;
    this.#input = input;
    this.#answerMs = answerMs;
    socket.setTimeout(0);
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("close", () => this.#end(closedFault(address.name)));
    socket.on("timeout", () => this.#drop(timeoutFault(address.name, answerMs)));
    this.#receive(Buffer.alloc(0));
  }

  /**
   * Connects to a display. The connection closes if the server does not answer a request within `answerMs`, for example
   * because it hangs or a program has grabbed it.
   */
  static async open(display: string, answerMs: number): Promise<X11Connection> {
    const address = displayAddress(display);
    const socket = await connect(address, answerMs);
    const input = new MessageBuffer(maxReplyBytes);
    try {
      const authority = await readAuthority(address.number, socket.remoteAddress);
      const setup = await greet(socket, input, authority, address, answerMs);
      return new X11Connection(address, setup, socket, input, answerMs);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Whether the connection is open. */
  get isOpen(): boolean {
    return this.#closedBy === undefined;
  }

  /** Sends a request that has a reply, and returns the reply. */
  ask(request: Request): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#closedBy) reject(this.#closedBy);
      else this.#pending.push({ sequence: this.#send(request), resolve, reject });
    });
  }

  /** Sends requests without replies. Resolves when the server has processed them, and rejects with the first error. */
  async perform(...requests: readonly Request[]): Promise<void> {
    const done = requests.map((request) => {
      if (this.#closedBy) throw this.#closedBy;
      const sequence = this.#send(request);
      return new Promise<Buffer>((resolve, reject) => {
        this.#pending.push({ sequence, resolve, reject });
      });
    });
    // The server answers in order, so the reply to this request proves that all earlier ones were processed.
    await Promise.all([...done, this.ask(new Request(getInputFocus))]);
  }

  /** Closes the connection. Requests in flight reject. */
  close(): void {
    this.#drop(closedFault(this.display));
  }

  #send(request: Request): number {
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#socket.write(request.bytes());
    this.#socket.setTimeout(this.#answerMs);
    return this.#sequence;
  }

  #receive(bytes: Buffer): void {
    try {
      this.#input.add(bytes);
      for (let message = this.#next(); message !== undefined; message = this.#next()) this.#take(message);
    } catch (error) {
      this.#drop(Fault.from(error));
    }
    if (this.#pending.length === 0) this.#socket.setTimeout(0);
  }

  #next(): Buffer | undefined {
    const head = this.#input.peek(32);
    if (head === undefined) return undefined;
    const [kind = 0] = head;
    const more = kind === 1 || (kind & 0x7f) === 35 ? head.readUInt32LE(4) * 4 : 0;
    return this.#input.take(32 + more);
  }

  #take(message: Buffer): void {
    const kind = message.readUInt8(0);
    if (kind > 1) return;
    const sequence = message.readUInt16LE(2);
    const index = this.#pending.findIndex((each) => each.sequence === sequence);
    if (index < 0) return;
    const [asked] = this.#pending.splice(index, 1);
    // Earlier requests without replies succeeded, because the server reported no error for them.
    for (const done of this.#pending.splice(0, index)) done.resolve(Buffer.alloc(0));
    if (kind === 1) asked?.resolve(message);
    else asked?.reject(refusal(message));
  }

  #drop(fault: Fault): void {
    this.#end(fault);
    this.#socket.destroy();
  }

  #end(fault: Fault): void {
    this.#closedBy ??= fault;
    for (const { reject } of this.#pending.splice(0)) reject(this.#closedBy);
  }
}

/** Whether the error means that a window disappeared between two requests. */
export function isWindowGone(error: unknown): boolean {
  return Fault.is(error) && (error.details?.["x11"] === "Window" || error.details?.["x11"] === "Drawable");
}

/** Whether the error means that a request does not fit the current state of a window. */
export function isMismatch(error: unknown): boolean {
  return Fault.is(error) && error.details?.["x11"] === "Match";
}

function refusal(message: Buffer): Fault {
  const name = errorNames[message.readUInt8(1)] ?? String(message.readUInt8(1));
  return new Fault(
    "internal",
    `the X server refused request ${message.readUInt8(10)}: Bad${name}, ${message.readUInt32LE(4)}`,
    { details: { x11: name } },
  );
}

function closedFault(display: string): Fault {
  return new Fault("dependency_missing", `the X server of ${display} closed the connection`);
}

function timeoutFault(display: string, answerMs: number): Fault {
  return new Fault(
    "tool_timeout",
    `the X server of ${display} did not answer for ${answerMs} ms: it hangs, or a program has grabbed it`,
  );
}

async function connect(address: DisplayAddress, answerMs: number): Promise<Socket> {
  const { connect: open } = await import("node:net");
  let last: unknown;
  for (const where of address.sockets) {
    try {
      const socket = open(where).setTimeout(answerMs);
      await new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve).once("error", reject);
        socket.once("timeout", () => socket.destroy(timeoutFault(address.name, answerMs)));
      });
      // Ignored, because the `close` event follows and reports the same.
      socket.removeAllListeners("error").on("error", () => {});
      return socket.removeAllListeners("timeout");
    } catch (error) {
      last = error;
    }
  }
  throw new Fault(
    "dependency_missing",
    `no X server answers at ${address.name}: start one (on Debian: apt-get install xvfb, then Xvfb ${address.name} -screen 0 1280x800x24), or set DISPLAY or the option display to another`,
    { cause: last },
  );
}

/** Sends the credentials and reads the description of the server. */
async function greet(
  socket: Socket,
  input: MessageBuffer,
  { scheme, data }: Authority,
  { name }: DisplayAddress,
  answerMs: number,
): Promise<ServerSetup> {
  const head = Buffer.alloc(12);
  head.write("l");
  head.writeUInt16LE(11, 2);
  head.writeUInt16LE(scheme.length, 6);
  head.writeUInt16LE(data.length, 8);
  socket.write(Buffer.concat([head, padded(Buffer.from(scheme)), padded(data)]));
  const reply = await new Promise<Buffer>((resolve, reject) => {
    const ended = (): void => reject(closedFault(name));
    const read = (bytes: Buffer): void => {
      input.add(bytes);
      const start = input.peek(8);
      const whole = start && input.take(8 + start.readUInt16LE(6) * 4);
      if (whole === undefined) return;
      socket.off("data", read).off("close", ended).pause();
      resolve(whole);
    };
    socket.on("data", read).on("close", ended);
    socket.once("timeout", () => reject(timeoutFault(name, answerMs)));
  });
  socket.removeAllListeners("timeout").resume();
  if (reply.readUInt8(0) === 1) return readSetup(reply.subarray(8), name);
  const reason = reply.toString("latin1", 8, 8 + reply.readUInt8(1)).trim() || "a cookie is not sufficient";
  throw new Fault(
    "permission_denied",
    `the X server of ${name} refused the connection: ${reason}. Set XAUTHORITY to the file with its cookie`,
  );
}

function readSetup(body: Buffer, name: string): ServerSetup {
  try {
    return parseSetup(body);
  } catch (cause) {
    throw new Fault("unsupported", `the server at ${name} is not an X server: its description is malformed`, {
      cause,
    });
  }
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(padding(bytes.length))]);
}
