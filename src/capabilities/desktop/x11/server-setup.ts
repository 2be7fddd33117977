import { padding } from "./request.ts";

interface ColourMasks {
  readonly red: number;
  readonly green: number;
  readonly blue: number;
}

/** One screen of a display. */
export interface Screen {
  /** Id of the root window. */
  readonly root: number;
  readonly width: number;
  readonly height: number;
  readonly depth: number;
  /** Bit masks of the colours in a pixel. All zero if pixels are indexes into a colour map. */
  readonly masks: ColourMasks;
}

/** Description that the server sends after it accepted the connection. */
export interface ServerSetup {
  readonly bigEndianImages: boolean;
  readonly minKeycode: number;
  readonly maxKeycode: number;
  /** Bits per pixel by depth. */
  readonly bitsPerPixel: ReadonlyMap<number, number>;
  readonly screens: readonly Screen[];
}

const [trueColour, directColour] = [4, 5];

/** Parses the description of the server. `body` is the reply without its first eight bytes. */
export function parseSetup(body: Buffer): ServerSetup {
  const vendorLength = body.readUInt16LE(16);
  const [screenCount, formatCount] = [body.readUInt8(20), body.readUInt8(21)];
  let at = 32 + vendorLength + padding(vendorLength);
  const bitsPerPixel = new Map<number, number>();
  for (let index = 0; index < formatCount; index++, at += 8)
    bitsPerPixel.set(body.readUInt8(at), body.readUInt8(at + 1));
  const screens: Screen[] = [];
  for (let index = 0; index < screenCount; index++) {
    const [root, visual] = [body.readUInt32LE(at), body.readUInt32LE(at + 32)];
    const [width, height] = [body.readUInt16LE(at + 20), body.readUInt16LE(at + 22)];
    const [depth, depthCount] = [body.readUInt8(at + 38), body.readUInt8(at + 39)];
    at += 40;
    let masks: ColourMasks = { red: 0, green: 0, blue: 0 };
    for (let each = 0; each < depthCount; each++) {
      const visuals = body.readUInt16LE(at + 2);
      at += 8;
      for (let one = 0; one < visuals; one++, at += 24) {
        const kind = body.readUInt8(at + 4);
        if (body.readUInt32LE(at) !== visual || (kind !== trueColour && kind !== directColour)) continue;
        masks = {
          red: body.readUInt32LE(at + 8),
          green: body.readUInt32LE(at + 12),
          blue: body.readUInt32LE(at + 16),
        };
      }
    }
    screens.push({ root, width, height, depth, masks });
  }
  return {
    bigEndianImages: body.readUInt8(22) === 1,
    minKeycode: body.readUInt8(26),
    maxKeycode: body.readUInt8(27),
    bitsPerPixel,
    screens,
  };
}
