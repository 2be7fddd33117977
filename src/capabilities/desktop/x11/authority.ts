import { readFile } from "node:fs/promises";
import { homedir, hostname } from "node:os";
import { join } from "node:path";

export interface Authority {
  readonly scheme: string;
  readonly data: Buffer;
}

const cookie = "MIT-MAGIC-COOKIE-1";
const nobody: Authority = { scheme: "", data: Buffer.alloc(0) };
/** A family of addresses: any host. */
const anyHost = 0xffff;

/** What the server wants to be shown, from the file that xauth keeps. Nothing when there is no file or no line for this display: it may let us in. */
export async function readAuthority(number: string): Promise<Authority> {
  const path = process.env["XAUTHORITY"] ?? join(homedir(), ".Xauthority");
  const file = await readFile(path).catch(() => Buffer.alloc(0));
  const lines = entriesOf(file).filter(
    (entry) => entry.scheme === cookie && (entry.number === number || entry.number === ""),
  );
  const own = lines.find(({ family, address }) => family === anyHost || address === hostname());
  return own ?? lines[0] ?? nobody;
}

interface Entry extends Authority {
  readonly family: number;
  readonly address: string;
  readonly number: string;
}

function entriesOf(file: Buffer): readonly Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  const field = (): Buffer => {
    const length = file.readUInt16BE(at);
    const data = file.subarray(at + 2, at + 2 + length);
    at += 2 + length;
    return data;
  };
  while (at + 10 <= file.length) {
    const family = file.readUInt16BE(at);
    at += 2;
    const [address, number, scheme] = [field().toString(), field().toString(), field().toString()];
    entries.push({ family, address, number, scheme, data: field() });
  }
  return entries;
}
