import type { Socket } from "node:net";
import { Fault } from "../../../kernel/index.ts";
import { MessageBuffer } from "../message-buffer.ts";
import { plainLine } from "../plain-text.ts";
import { DBusReader, DBusWriter, type DBusValue } from "./dbus-value.ts";

/** A method call on the bus. */
export interface DBusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** D-Bus signature of the arguments: strings (`s`), signed 32-bit integers (`i`) and unsigned ones (`u`). */
  readonly signature?: string;
  readonly args?: readonly (string | number)[];
}

/** A call that waits for its reply. */
interface PendingCall {
  readonly resolve: (values: readonly DBusValue[]) => void;
  readonly reject: (error: Fault) => void;
}

const [methodCall, methodReturn, methodError] = [1, 2, 3];
const [pathField, interfaceField, memberField, replyField, destinationField, signatureField] = [
  1, 2, 3, 5, 6, 8,
];
/** Maximum length of the bus's reply to the authentication, in characters. */
const maxGreetingLength = 1_000;
/** Maximum length of an error text of the bus, in characters. */
const maxReasonLength = 300;
/** Maximum size of one message, in bytes. */
const maxMessageBytes = 16 * 1024 * 1024;

/** A client of a D-Bus message bus: sends calls and receives their replies. Signals and incoming calls are ignored. */
export class DBusConnection {
  readonly #socket: Socket;
  readonly #pending = new Map<number, PendingCall>();
  readonly #input = new MessageBuffer(maxMessageBytes);
  #serial = 0;
  #closedBy: Fault | undefined;

  readonly #answerMs: number;

  private constructor(socket: Socket, answerMs: number) {
    this.#socket = socket;
    this.#answerMs = answerMs;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("close", () => this.#end(closed()));
  }

  /**
   * Connects to a bus. `address` has the form of D-Bus: `unix:path=...` or `unix:abstract=...`, several separated by
   * `;`. `answerMs` is the maximum duration of each reply.
   */
  static async open(address: string, answerMs: number): Promise<DBusConnection> {
    const socket = await connect(address);
    try {
      await authenticate(socket, answerMs);
      const connection = new DBusConnection(socket, answerMs);
      await connection.call({
        destination: "org.freedesktop.DBus",
        path: "/org/freedesktop/DBus",
        interface: "org.freedesktop.DBus",
        member: "Hello",
      });
      return connection;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  /** Whether the connection is open. */
  get isOpen(): boolean {
    return this.#closedBy === undefined;
  }

  /**
   * Calls a method and returns its values. Rejects with `tool_timeout` if no reply arrives in time, and with
   * `tool_failed` if the program refuses.
   */
  call(call: DBusCall): Promise<readonly DBusValue[]> {
    if (this.#closedBy) return Promise.reject(this.#closedBy);
    const serial = ++this.#serial;
    this.#socket.write(encode(call, serial));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#pending.delete(serial);
        reject(new Fault("tool_timeout", `${call.destination} did not answer ${call.member} in time`));
      }, this.#answerMs);
      const settled = (): void => {
        clearTimeout(late);
        this.#pending.delete(serial);
      };
      this.#pending.set(serial, {
        resolve: (values) => {
          settled();
          resolve(values);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
    });
  }

  /** Closes the connection. Calls in flight reject. */
  close(): void {
    this.#drop(closed());
  }

  /**
   * Processes received bytes. A malformed message closes the connection, because the position of the next message is
   * then unknown.
   */
  #receive(bytes: Buffer): void {
    try {
      this.#input.add(bytes);
      while (this.#next());
    } catch (error) {
      const { message } = Fault.from(error);
      this.#drop(new Fault("dependency_missing", `the message bus sent a malformed message: ${message}`));
    }
  }

  /** Processes the next message. Returns `false` if no complete message has been received. */
  #next(): boolean {
    const head = this.#input.peek(16);
    if (head === undefined) return false;
    const little = head.readUInt8(0) === "l".charCodeAt(0);
    const read = (at: number): number => (little ? head.readUInt32LE(at) : head.readUInt32BE(at));
    const start = Math.ceil((16 + read(12)) / 8) * 8;
    const message = this.#input.take(start + read(4));
    if (message === undefined) return false;
    this.#take(message, start, little);
    return true;
  }

  #take(message: Buffer, start: number, little: boolean): void {
    const kind = message.readUInt8(1);
    if (kind !== methodReturn && kind !== methodError) return;
    const [fields] = new DBusReader(message, little, 12).all("a(yv)") as [readonly [number, DBusValue][]];
    const known = new Map(fields);
    const asked = this.#pending.get(Number(known.get(replyField)));
    if (asked === undefined) return;
    const signature = String(known.get(signatureField) ?? "");
    const values = new DBusReader(message.subarray(start), little).all(signature);
    if (kind === methodReturn) asked.resolve(values);
    else
      asked.reject(new Fault("tool_failed", plainLine(String(values[0] ?? known.get(4)), maxReasonLength)));
  }

  #drop(fault: Fault): void {
    this.#end(fault);
    this.#socket.destroy();
  }

  #end(fault: Fault): void {
    this.#closedBy ??= fault;
    for (const { reject } of this.#pending.values()) reject(this.#closedBy);
  }
}

function closed(): Fault {
  return new Fault("dependency_missing", "the message bus closed the connection");
}

function encode(call: DBusCall, serial: number): Buffer {
  const { args = [], signature = "" } = call;
  const body = new DBusWriter();
  for (const value of args) {
    if (typeof value === "string") body.text(value);
    else body.u32(value);
  }
  const fields = new DBusWriter();
  const field = (code: number, type: "o" | "s" | "g", value: string): void => {
    fields.align(8).u8(code).signature(type);
    if (type === "g") fields.signature(value);
    else fields.text(value);
  };
  field(pathField, "o", call.path);
  field(interfaceField, "s", call.interface);
  field(memberField, "s", call.member);
  field(destinationField, "s", call.destination);
  if (signature !== "") field(signatureField, "g", signature);
  const head = new DBusWriter().u8("l".charCodeAt(0)).u8(methodCall).u8(0).u8(1).u32(body.length).u32(serial);
  return head.u32(fields.length).raw(fields.bytes()).align(8).raw(body.bytes()).bytes();
}

async function connect(address: string): Promise<Socket> {
  const { connect: open } = await import("node:net");
  let last: unknown = "it names no unix socket";
  for (const one of address.split(";")) {
    const parts = new Map(
      one
        .replace(/^unix:/u, "")
        .split(",")
        .map((part) => part.split("=", 2) as [string, string]),
    );
    const [path, abstract] = [parts.get("path"), parts.get("abstract")];
    if (!one.startsWith("unix:") || (path ?? abstract) === undefined) continue;
    const socket = open({ path: decodeURIComponent(path ?? `\0${abstract}`) });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once("connect", resolve).once("error", reject);
      });
      // Ignored, because the `close` event follows and reports the same.
      socket.removeAllListeners("error").on("error", () => {});
      return socket;
    } catch (error) {
      last = error;
    }
  }
  throw new Fault("dependency_missing", `no message bus answers at ${address}`, { cause: last });
}

/** Authenticates as the user of this process. The kernel confirms this user to the bus. */
async function authenticate(socket: Socket, answerMs: number): Promise<void> {
  const user = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
  socket.write(`\0AUTH EXTERNAL ${user}\r\n`);
  const answer = await new Promise<string>((resolve, reject) => {
    let said = "";
    const ended = (): void => reject(closed());
    const late = (): void => reject(new Fault("tool_timeout", "the message bus did not answer in time"));
    const read = (bytes: Buffer): void => {
      said += bytes.toString("latin1");
      if (!said.includes("\r\n") && said.length < maxGreetingLength) return;
      socket.off("data", read).off("close", ended).off("timeout", late).setTimeout(0);
      resolve(said);
    };
    socket.setTimeout(answerMs).on("data", read).on("close", ended).on("timeout", late);
  });
  if (!answer.startsWith("OK "))
    throw new Fault(
      "permission_denied",
      `the message bus refused the connection: ${plainLine(answer, maxGreetingLength)}`,
    );
  socket.write("BEGIN\r\n");
}
