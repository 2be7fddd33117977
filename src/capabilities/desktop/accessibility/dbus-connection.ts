import type { Socket } from "node:net";
import { Fault } from "../../../kernel/index.ts";
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
/** A program that hangs keeps its answer to itself; the others are shown. */
const answerMs = 2_000;

/** One client of a message bus: calls and their answers. Signals and calls to us are passed over. */
export class DBusConnection {
  readonly #socket: Socket;
  readonly #asked = new Map<number, Asked>();
  #input = Buffer.alloc(0);
  #serial = 0;
  #gone = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("close", () => this.#end());
  }

  /** `address` is as the bus says it: `unix:path=...`, `unix:abstract=...`, several with `;`. */
  static async open(address: string): Promise<DBusConnection> {
    const socket = await connect(address);
    await authenticate(socket);
    const connection = new DBusConnection(socket);
    await connection.call({
      destination: "org.freedesktop.DBus",
      path: "/org/freedesktop/DBus",
      interface: "org.freedesktop.DBus",
      member: "Hello",
    });
    return connection;
  }

  get isOpen(): boolean {
    return !this.#gone;
  }

  call(call: DBusCall): Promise<readonly DBusValue[]> {
    if (this.#gone) return Promise.reject(closed());
    const serial = ++this.#serial;
    this.#socket.write(encode(call, serial));
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#asked.delete(serial);
        reject(new Fault("tool_timeout", `${call.destination} does not answer ${call.member}`));
      }, answerMs);
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
    this.#end();
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    this.#input = Buffer.concat([this.#input, bytes]);
    for (;;) {
      if (this.#input.length < 16) return;
      const little = this.#input.readUInt8(0) === "l".charCodeAt(0);
      const read = (at: number): number =>
        little ? this.#input.readUInt32LE(at) : this.#input.readUInt32BE(at);
      const start = Math.ceil((16 + read(12)) / 8) * 8;
      const length = start + read(4);
      if (this.#input.length < length) return;
      const message = this.#input.subarray(0, length);
      this.#input = this.#input.subarray(length);
      this.#take(message, start, little);
    }
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
    else asked.reject(new Fault("tool_failed", String(values[0] ?? known.get(4) ?? "refused")));
  }

  #end(): void {
    this.#gone = true;
    for (const { reject } of this.#asked.values()) reject(closed());
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
async function authenticate(socket: Socket): Promise<void> {
  const user = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
  socket.write(`\0AUTH EXTERNAL ${user}\r\n`);
  const answer = await new Promise<string>((resolve, reject) => {
    let said = "";
    const ended = (): void => reject(closed());
    const read = (bytes: Buffer): void => {
      said += bytes.toString("latin1");
      if (!said.includes("\r\n")) return;
      socket.off("data", read).off("close", ended);
      resolve(said);
    };
    socket.on("data", read).on("close", ended);
  });
  if (!answer.startsWith("OK ")) {
    socket.destroy();
    throw new Fault("permission_denied", `the message bus lets us not in: ${answer.trim()}`);
  }
  socket.write("BEGIN\r\n");
}
