import type { FileHandle } from "node:fs/promises";
import type { CancelSignal } from "../../kernel/index.ts";

export interface LinePage {
  /** Without the line end of the last line shown. */
  readonly text: string;
  /** The last line shown, from 1; the last there is when none is shown. */
  readonly to: number;
  /** The file ends here. */
  readonly isEnd: boolean;
  /** The last line shown is longer than that. */
  readonly isCut: boolean;
  /** Every byte was UTF-8. */
  readonly isExact: boolean;
}

export interface LineRange {
  /** From 1. */
  readonly from: number;
  readonly lines: number;
  readonly maxBytes: number;
  readonly signal: CancelSignal;
}

const chunkBytes = 65_536;
const lineEnd = 0x0a;

/** Some lines of a file; no more than `maxBytes` and a chunk are held. */
export async function readLines(
  file: FileHandle,
  { from, lines, maxBytes, signal }: LineRange,
): Promise<LinePage> {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let line = 1;
  let position = 0;
  let isFull = false;
  let endsLine = true;
  let isEnd = false;
  while (!isFull) {
    signal.throwIfAborted();
    const chunk = await readBytes(file, position, chunkBytes);
    position += chunk.length;
    if (chunk.length === 0) {
      isEnd = true;
      break;
    }
    for (let at = 0; at < chunk.length && !isFull;) {
      const end = chunk.indexOf(lineEnd, at);
      const next = end === -1 ? chunk.length : end + 1;
      if (line >= from) {
        const room = maxBytes - keptBytes;
        const piece = chunk.subarray(at, Math.min(next, at + room));
        kept.push(piece);
        keptBytes += piece.length;
        if (piece.length < next - at) {
          isFull = true;
          endsLine = false;
          break;
        }
      }
      at = next;
      endsLine = end !== -1;
      if (endsLine) line++;
      if (line >= from + lines) isFull = true;
      if (isFull && at >= chunk.length) isEnd = (await readBytes(file, position, 1)).length === 0;
    }
  }
  const bytes = Buffer.concat(kept);
  const isCut = !endsLine && !isEnd;
  const whole = isCut ? bytes.subarray(0, characterEnd(bytes)) : bytes;
  const text = whole.toString("utf8");
  return {
    text: text.replace(/\r?\n$/, ""),
    to: endsLine ? line - 1 : line,
    isEnd,
    isCut,
    isExact: Buffer.from(text).equals(whole),
  };
}

/** As many bytes as there are, up to `length`. */
export async function readBytes(file: FileHandle, position: number, length: number): Promise<Uint8Array> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/** Where the last whole character ends. */
function characterEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(4, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}
