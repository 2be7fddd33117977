import { Fault } from "../../../kernel/index.ts";

/** Where an X server listens: sockets to try in turn, and what its authority file calls it. */
export interface DisplayAddress {
  readonly name: string;
  readonly number: string;
  readonly screen: number;
  readonly sockets: readonly ({ readonly path: string } | { readonly host: string; readonly port: number })[];
}

/** `:0`, `:0.1`, `host:0`, `/path/to/socket:0`: as the variable DISPLAY has it. */
export function displayAddress(name: string): DisplayAddress {
  const [, host = "", number = "", screen = "0"] =
    /^(?:\w+\/(?=[^/]*:))?(.*):(\d+)(?:\.(\d+))?$/u.exec(name) ?? [];
  if (number === "")
    throw new Fault(
      "invalid_argument",
      `${JSON.stringify(name)} is no X display: it is written :NUMBER or HOST:NUMBER, such as :0`,
    );
  return { name, number, screen: Number(screen), sockets: socketsOf(host, number) };
}

function socketsOf(host: string, number: string): DisplayAddress["sockets"] {
  if (host.startsWith("/")) return [{ path: `${host}:${number}` }, { path: host }];
  if (host !== "" && host !== "unix") return [{ host, port: 6000 + Number(number) }];
  const path = `/tmp/.X11-unix/X${number}`;
  // Linux servers listen at an abstract address too, and only there when the folder could not be made.
  return process.platform === "linux" ? [{ path }, { path: `\0${path}` }] : [{ path }];
}
