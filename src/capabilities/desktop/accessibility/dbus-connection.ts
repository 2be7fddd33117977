import type { Socket } from "node:net";
import { Fault } from "../../../kernel/index.ts";
import { InputWindow } from "../input-window.ts";
import { plainLine } from "../plain-words.ts";
import { DBusReader, DBusWriter, type DBusValue } from "./dbus-value.ts";

export interface DBusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** Of the arguments: texts (`s`) and whole numbers of 32 bits, with a sign (`i`) or without (`u`). */
  readonly signature?: string;
  readonly args?: readonly (string | number)[];
}

interface Asked {
  readonly resolve: (values: readonly DBusValue[]) => void;
  readonly reject: (error: Fault) => void;
}

const [methodCall, methodReturn, methodError] = [1, 2, 3];
const [pathField, interfaceField, memberField, replyField, destinationField, signatureField] = [
  1, 2, 3, 5, 6, 8,
];
/** Of what a bus says before it lets us in. */
const longestGreeting = 1_000;
/** Of why a call was refused, in characters. */
const mostReason = 300;
/** Of one message. */
const mostBytes = 16 * 1024 * 1024;

/** One client of a message bus: calls and their answers. Signals and calls to us are passed over. */
export class DBusConnection {
  readonly #socket: Socket;
  readonly #asked = new Map<number, Asked>();
  readonly #input = new InputWindow(mostBytes);
  #serial = 0;
  #gone: Fault | undefined;

  readonly #answerMs: number;

  private constructor(socket: Socket, answerMs: number) {
    this.#socket = socket;
    this.#answerMs = answerMs;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("close", () => this.#end(closed()));
  }

  /** `address` is as the bus says it: `unix:path=...`, `unix:abstract=...`, several with `;`. A program that hangs for longer keeps its answer to itself. */
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

  get isOpen(): boolean {
    return this.#gone === undefined;
  }

  call(call: DBusCall): Promise<readonly DBusValue[]> {
    if (this.#gone) return Promise.reject(this.#gone);
    const serial = ++this.#serial;
    this.#socket.write(encode(call, serial));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#asked.delete(serial);
        reject(new Fault("tool_timeout", `${call.destination} does not answer ${call.member}`));
      }, this.#answerMs);
      const settled = (): void => {
        clearTimeout(late);
        this.#asked.delete(serial);
      };
      this.#asked.set(serial, {
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

  close(): void {
    this.#drop(closed());
  }

  /** What is no message, or has values that are none, ends the connection: what follows cannot be trusted either. */
  #receive(bytes: Buffer): void {
    try {
      this.#input.add(bytes);
      while (this.#next());
    } catch (error) {
      const { message } = Fault.from(error);
      this.#drop(new Fault("dependency_missing", `the message bus is not understood: ${message}`));
    }
  }

  /** Whether there was a whole message. */
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
    const asked = this.#asked.get(Number(known.get(replyField)));
    if (asked === undefined) return;
    const signature = String(known.get(signatureField) ?? "");
    const values = new DBusReader(message.subarray(start), little).all(signature);
    if (kind === methodReturn) asked.resolve(values);
    else asked.reject(new Fault("tool_failed", plainLine(String(values[0] ?? known.get(4)), mostReason)));
  }

  #drop(fault: Fault): void {
    this.#end(fault);
    this.#socket.destroy();
  }

  #end(fault: Fault): void {
    this.#gone ??= fault;
    for (const { reject } of this.#asked.values()) reject(this.#gone);
  }
}

function closed(): Fault {
  return new Fault("dependency_missing", "the message bus has closed the connection");
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
      // Its close tells the same, after it.
      socket.removeAllListeners("error").on("error", () => {});
      return socket;
    } catch (error) {
      last = error;
    }
  }
  throw new Fault("dependency_missing", `no message bus answers at ${address}`, { cause: last });
}

/** By the user we are, which the kernel tells the bus. */
async function authenticate(socket: Socket, answerMs: number): Promise<void> {
  const user = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
  socket.write(`\0AUTH EXTERNAL ${user}\r\n`);
  const answer = await new Promise<string>((resolve, reject) => {
    let said = "";
    const ended = (): void => reject(closed());
    const late = (): void => reject(new Fault("tool_timeout", "the message bus does not answer"));
    const read = (bytes: Buffer): void => {
      said += bytes.toString("latin1");
      if (!said.includes("\r\n") && said.length < longestGreeting) return;
      socket.off("data", read).off("close", ended).off("timeout", late).setTimeout(0);
      resolve(said);
    };
    socket.setTimeout(answerMs).on("data", read).on("close", ended).on("timeout", late);
  });
  if (!answer.startsWith("OK "))
    throw new Fault(
      "permission_denied",
      `the message bus lets us not in: ${plainLine(answer, longestGreeting)}`,
    );
  socket.write("BEGIN\r\n");
}
