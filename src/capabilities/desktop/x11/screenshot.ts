import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";
import { Fault } from "../../../kernel/index.ts";
import type { X11Connection } from "./connection.ts";
import { Request } from "./request.ts";

/** A rectangle on the screen, in pixels. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const [getImage, zPixmap, allPlanes] = [73, 2, 0xffff_ffff];

/** Returns an area of the screen as PNG, without the pointer. */
export async function takeScreenshot(x11: X11Connection, area: Area): Promise<Buffer> {
  const { root } = x11.screen;
  const request = new Request(getImage, zPixmap)
    .u32(root)
    .i16(area.x, area.y)
    .u16(area.width, area.height)
    .u32(allPlanes);
  return toPng(area.width, area.height, toRgb(x11, area, await x11.ask(request)));
}

/** Converts an image to PNG rows: a filter byte (0, no filter), then red, green and blue of each pixel. */
function toRgb({ setup, screen }: X11Connection, { width, height }: Area, reply: Buffer): Buffer {
  const { masks } = screen;
  const bits = setup.bitsPerPixel.get(reply.readUInt8(1)) ?? 0;
  if (masks.red === 0 || (bits !== 16 && bits !== 24 && bits !== 32))
    throw new Fault(
      "unsupported",
      `a screenshot of a display of depth ${screen.depth} is not supported: use a depth of 16, 24 or 32, such as Xvfb -screen 0 1280x800x24`,
    );
  const bytes = bits / 8;
  // Rows are padded to 32 bits.
  const stride = Math.ceil((width * bits) / 32) * 4;
  const read = setup.bigEndianImages
    ? (at: number) => reply.readUIntBE(at, bytes)
    : (at: number) => reply.readUIntLE(at, bytes);
  const shades = [masks.red, masks.green, masks.blue].map(shadeOf);
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0, to = 0; y < height; y++) {
    rows[to++] = 0;
    for (let x = 0, from = 32 + y * stride; x < width; x++, from += bytes) {
      const pixel = read(from);
      for (const shade of shades) rows[to++] = shade(pixel);
    }
  }
  return rows;
}

/** Returns a function that reads one colour of a pixel, as 0 to 255. */
function shadeOf(mask: number): (pixel: number) => number {
  const shift = Math.clz32(mask & -mask) ^ 31;
  const most = mask >>> shift;
  if (most === 255) return (pixel) => (pixel >>> shift) & 255;
  return (pixel) => Math.round((((pixel & mask) >>> shift) * 255) / most);
}

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const [bitDepth, trueColour] = [8, 2];

async function toPng(width: number, height: number, rows: Buffer): Promise<Buffer> {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([bitDepth, trueColour], 8);
  const data = await promisify(deflate)(rows);
  return Buffer.concat([signature, chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(kind: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(kind), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}
