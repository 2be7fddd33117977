import { readFile } from "node:fs/promises";
import { homedir, hostname } from "node:os";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";

/** Credentials for an X server. */
export interface Authority {
  readonly scheme: string;
  readonly data: Buffer;
}

const cookie = "MIT-MAGIC-COOKIE-1";
const noAuthority: Authority = { scheme: "", data: Buffer.alloc(0) };
/** Address families of the authority file: IPv4, IPv6, this machine by name, and any. */
const families = { v4: 0, v6: 6, local: 256, any: 0xffff } as const;

/**
 * Returns the credentials for a display from the file of xauth. They are empty if the file or an entry for the display
 * is missing, because the server may accept connections without them. `remote` is the address of a server that is
 * reached over TCP; such a server gets only an entry for its own address or for any.
 */
export async function readAuthority(number: string, remote = ""): Promise<Authority> {
  const path = process.env["XAUTHORITY"] ?? join(homedir(), ".Xauthority");
  const file = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return Buffer.alloc(0);
    throw new Fault(
      "permission_denied",
      `the file ${path} with the display's cookie cannot be read: ${error.message}`,
      {
        cause: error,
      },
    );
  });
  const lines = entriesOf(file).filter(
    (entry) => entry.scheme === cookie && (entry.number === number || entry.number === ""),
  );
  const isOwn = ({ family, address }: Entry): boolean =>
    isLocal(remote)
      ? family === families.local && address.toString() === hostname()
      : isInternet(family) && address.equals(addressBytes(remote));
  // An entry for another host name counts, because the machine may have been renamed since.
  const isMeant = ({ family }: Entry): boolean =>
    family === families.any || (isLocal(remote) && family === families.local);
  return lines.find(isOwn) ?? lines.find(isMeant) ?? noAuthority;
}

function isInternet(family: number): boolean {
  return family === families.v4 || family === families.v6;
}

/**
 * Whether the server is on this machine. This includes SSH tunnels, whose cookie is stored as that of a local display.
 */
function isLocal(remote: string): boolean {
  return remote === "" || remote === "::1" || /^(?:::ffff:)?127\./u.test(remote);
}

function addressBytes(address: string): Buffer {
  const plain = address.replace(/^::ffff:(?=\d+\.)/u, "").replace(/%.*$/u, "");
  if (!plain.includes(":")) return Buffer.from(plain.split(".").map(Number));
  const [head = "", tail] = plain.split("::");
  const [before = [], after = []] = [head, tail ?? ""].map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => "0");
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, "0")).join(""), "hex");
}

interface Entry extends Authority {
  readonly family: number;
  readonly address: Buffer;
  readonly number: string;
}

/** Parses the complete entries of an authority file. A truncated or foreign file has fewer. */
function entriesOf(file: Buffer): readonly Entry[] {
  const entries: Entry[] = [];
  let at = 0;
  const field = (): Buffer => {
    const start = at + 2;
    at = start + (start <= file.length ? file.readUInt16BE(at) : 0);
    return file.subarray(start, at);
  };
  while (at + 10 <= file.length) {
    const family = file.readUInt16BE(at);
    at += 2;
    const [address, number, scheme, data] = [field(), field().toString(), field().toString(), field()];
    if (at <= file.length) entries.push({ family, address, number, scheme, data });
  }
  return entries;
}
