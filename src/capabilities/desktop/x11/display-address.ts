import { Fault } from "../../../kernel/index.ts";

/** Address of an X display. */
export interface DisplayAddress {
  /** Name as the caller wrote it, such as `:0`. */
  readonly name: string;
  /** Number of the display, by which the authority file lists it. */
  readonly number: string;
  readonly screen: number;
  /** Sockets to try, in order. */
  readonly sockets: readonly ({ readonly path: string } | { readonly host: string; readonly port: number })[];
}

/** Parses the name of a display as in the variable `DISPLAY`: `:0`, `:0.1`, `host:0` or `/path/to/socket:0`. */
export function displayAddress(name: string): DisplayAddress {
  const [, host = "", number = "", screen = "0"] =
    /^(?:\w+\/(?=[^/]*:))?(.*):(\d+)(?:\.(\d+))?$/u.exec(name) ?? [];
  if (number === "")
    throw new Fault(
      "invalid_argument",
      `invalid X display ${JSON.stringify(name)}: use :NUMBER or HOST:NUMBER, such as :0`,
    );
  return { name, number, screen: Number(screen), sockets: socketsOf(host, number) };
}

function socketsOf(host: string, number: string): DisplayAddress["sockets"] {
  if (host.startsWith("/")) return [{ path: `${host}:${number}` }, { path: host }];
  if (host !== "" && host !== "unix") return [{ host, port: 6000 + Number(number) }];
  const path = `/tmp/.X11-unix/X${number}`;
  // Linux servers also listen on an abstract address, and only there if the folder could not be created.
  return process.platform === "linux" ? [{ path }, { path: `\0${path}` }] : [{ path }];
}
