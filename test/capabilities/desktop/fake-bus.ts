import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import {
  DBusReader,
  DBusWriter,
  type DBusValue,
} from "../../../src/capabilities/desktop/accessibility/dbus-value.ts";

export interface BusCall {
  readonly path: string;
  readonly member: string;
  readonly args: readonly DBusValue[];
}

/** Reply of the fake bus. `undefined` means that it never replies. */
export type BusAnswer = { readonly signature: string; readonly body: Buffer } | undefined;

/** A fake message bus that answers every call with what the test provides. */
export class FakeBus {
  readonly address: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #greeting: string;

  private constructor(address: string, server: Server, greeting: string) {
    [this.address, this.#server, this.#greeting] = [address, server, greeting];
  }

  static async start(
    path: string,
    answer: (call: BusCall) => BusAnswer,
    greeting = "OK 0123\r\n",
  ): Promise<FakeBus> {
    const server = createServer();
    const bus = new FakeBus(`unix:path=${path}`, server, greeting);
    server.on("connection", (socket) => bus.#serve(socket, answer));
    await once(server.listen(path), "listening");
    return bus;
  }

  get open(): number {
    return this.#sockets.size;
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket, answer: (call: BusCall) => BusAnswer): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket)).on("error", () => {});
    let input = Buffer.alloc(0);
    let isIn = false;
    socket.on("data", (bytes) => {
      input = Buffer.concat([input, bytes]);
      if (!isIn) {
        if (input.includes("AUTH")) socket.write(this.#greeting);
        const begin = input.indexOf("BEGIN\r\n");
        input = begin < 0 ? Buffer.alloc(0) : input.subarray(begin + 7);
        isIn = begin >= 0;
        if (!isIn) return;
      }
      while (input.length >= 16) {
        const start = Math.ceil((16 + input.readUInt32LE(12)) / 8) * 8;
        const length = start + input.readUInt32LE(4);
        if (input.length < length) return;
        const { serial, call } = read(input.subarray(0, length), start);
        input = input.subarray(length);
        const said = answer(call);
        if (said !== undefined) socket.write(reply(serial, said));
      }
    });
  }
}

function read(message: Buffer, start: number): { readonly serial: number; readonly call: BusCall } {
  const [fields] = new DBusReader(message, true, 12).all("a(yv)") as [readonly [number, DBusValue][]];
  const known = new Map(fields);
  const args = new DBusReader(message.subarray(start), true).all(String(known.get(8) ?? ""));
  const call = { path: String(known.get(1)), member: String(known.get(3)), args };
  return { serial: message.readUInt32LE(8), call };
}

function reply(serial: number, { signature, body }: NonNullable<BusAnswer>): Buffer {
  const fields = new DBusWriter().u8(5).signature("u").u32(serial);
  fields.align(8).u8(8).signature("g").signature(signature);
  const head = new DBusWriter().u8(0x6c).u8(2).u8(0).u8(1).u32(body.length).u32(1).u32(fields.length);
  return head.raw(fields.bytes()).align(8).raw(body).bytes();
}

export function texts(...values: readonly string[]): BusAnswer {
  const writer = new DBusWriter();
  for (const value of values) writer.text(value);
  return { signature: "s".repeat(values.length), body: writer.bytes() };
}

/** Returns the paths as elements of the program `:1.1`. */
export function elements(...paths: readonly string[]): BusAnswer {
  const list = new DBusWriter();
  for (const path of paths) list.align(8).text(":1.1").text(path);
  const body = new DBusWriter().u32(list.length).align(8).raw(list.bytes());
  return { signature: "a(so)", body: body.bytes() };
}

export function numbers(...values: readonly number[]): BusAnswer {
  const list = new DBusWriter();
  for (const value of values) list.u32(value);
  return { signature: "au", body: new DBusWriter().u32(list.length).raw(list.bytes()).bytes() };
}
