import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";

const [getAttributes, getGeometry, queryTree, internAtom, getProperty] = [3, 14, 15, 16, 20];
const [queryPointer, translate, setFocus, getFocus, queryExtension, getKeys] = [38, 40, 42, 43, 98, 101];
const testExtension = 200;
const root = 1;

interface FakeWindow {
  readonly id: number;
  readonly properties: Readonly<Record<string, string>>;
}

export interface FakeDisplayOptions {
  readonly windows?: readonly FakeWindow[];
  /** Reply to use instead of the normal one, by opcode. `undefined` means the normal reply. */
  readonly instead?: (opcode: number, sequence: number) => Buffer | "nothing" | undefined;
}

/**
 * A fake X server on a socket with the requests that these tests need. It shows the given windows and has a key for `a`.
 */
export class FakeDisplay {
  readonly name: string;
  readonly #server: Server;
  readonly #options: FakeDisplayOptions;
  readonly #sockets = new Set<Socket>();
  readonly #atoms = [""];
  /** Number of clients that have connected. */
  clients = 0;
  /** Keys and buttons that clients have simulated. */
  played = 0;

  private constructor(name: string, server: Server, options: FakeDisplayOptions) {
    [this.name, this.#server, this.#options] = [name, server, options];
  }

  static async start(name: string, options: FakeDisplayOptions = {}): Promise<FakeDisplay> {
    const server = createServer();
    const display = new FakeDisplay(name, server, options);
    server.on("connection", (socket) => display.#serve(socket));
    await once(server.listen(name), "listening");
    return display;
  }

  get open(): number {
    return this.#sockets.size;
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #serve(socket: Socket): void {
    this.clients++;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket)).on("error", () => {});
    let input = Buffer.alloc(0);
    let sequence = -1;
    socket.on("data", (bytes) => {
      input = Buffer.concat([input, bytes]);
      for (;;) {
        const length = sequence < 0 ? 12 : input.length < 4 ? 4 : input.readUInt16LE(2) * 4;
        if (input.length < length) return;
        const request = input.subarray(0, length);
        input = input.subarray(sequence < 0 ? input.length : length);
        const opcode = ++sequence === 0 ? 0 : request.readUInt8(0);
        const answer = this.#options.instead?.(opcode, sequence) ?? this.#answer(opcode, sequence, request);
        if (answer !== "nothing") socket.write(answer);
      }
    });
  }

  #answer(opcode: number, sequence: number, request: Buffer): Buffer | "nothing" {
    const { windows = [] } = this.#options;
    switch (opcode) {
      case 0:
        return setup();
      case getAttributes:
        return reply(sequence, 0, (bytes) => {
          bytes.writeUInt16LE(1, 12);
          bytes.writeUInt8(2, 26);
        });
      case getGeometry:
        return reply(sequence, 0, (bytes) => {
          bytes.writeUInt16LE(30, 16);
          bytes.writeUInt16LE(20, 18);
        });
      case queryTree: {
        const children = request.readUInt32LE(4) === root ? windows : [];
        const data = Buffer.alloc(children.length * 4);
        for (const [index, { id }] of children.entries()) data.writeUInt32LE(id, index * 4);
        return reply(sequence, 0, (bytes) => bytes.writeUInt16LE(children.length, 16), data);
      }
      case internAtom:
        return reply(sequence, 0, (bytes) => {
          const atom = this.#atoms.push(request.toString("latin1", 8, 8 + request.readUInt16LE(4))) - 1;
          bytes.writeUInt32LE(atom, 8);
        });
      case getProperty: {
        const of = windows.find(({ id }) => id === request.readUInt32LE(4));
        const value = of?.properties[this.#atoms[request.readUInt32LE(8)] ?? ""];
        if (value === undefined) return reply(sequence);
        const data = Buffer.from(value).subarray(0, request.readUInt32LE(20) * 4);
        const note = (bytes: Buffer) => {
          bytes.writeUInt32LE(this.#atoms.indexOf("UTF8_STRING"), 8);
          bytes.writeUInt32LE(data.length, 16);
        };
        return reply(sequence, 8, note, data);
      }
      case getKeys: {
        const keys = Buffer.alloc(248 * 8);
        keys.writeUInt32LE(0x61, 30 * 8);
        return reply(sequence, 2, () => {}, keys);
      }
      case queryExtension:
        return reply(sequence, 0, (bytes) => bytes.set([1, testExtension], 8));
      case getFocus:
      case queryPointer:
      case translate:
        return reply(sequence);
      case testExtension:
        this.played++;
        return "nothing";
      default:
        return "nothing";
    }
  }
}

/** Returns the server's error for a window that no longer exists. */
export function badWindow(opcode: number, sequence: number): Buffer | undefined {
  if (opcode !== setFocus) return undefined;
  const bytes = Buffer.alloc(32);
  bytes.writeUInt8(3, 1);
  bytes.writeUInt16LE(sequence, 2);
  bytes.writeUInt8(opcode, 10);
  return bytes;
}

export function reply(
  sequence: number,
  second = 0,
  fill: (bytes: Buffer) => void = () => {},
  data: Buffer = Buffer.alloc(0),
): Buffer {
  const padded = Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
  const bytes = Buffer.alloc(32);
  bytes.set([1, second]);
  bytes.writeUInt16LE(sequence & 0xffff, 2);
  bytes.writeUInt32LE(padded.length / 4, 4);
  fill(bytes);
  return Buffer.concat([bytes, padded]);
}

/** Returns the description of a server with one screen of 640 by 480 pixels. */
function setup(): Buffer {
  const body = Buffer.alloc(32 + 40);
  body.set([1, 0], 20);
  body.set([8, 255], 26);
  body.writeUInt32LE(root, 32);
  body.writeUInt16LE(640, 52);
  body.writeUInt16LE(480, 54);
  const head = Buffer.from([1, 0, 11, 0, 0, 0, body.length / 4, 0]);
  return Buffer.concat([head, body]);
}
