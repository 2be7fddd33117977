import { Fault } from "../../kernel/index.ts";

/**
 * Returns the host of a URL in the form in which hosts are compared and approved: in lower case and ASCII, without the
 * dot at its end, and with the port unless it is the default of the scheme.
 */
export function canonicalHost({ hostname, port }: URL): string {
  const name = hostname.replace(/\.$/, "");
  return port === "" ? name : `${name}:${port}`;
}

/**
 * Reads a URL that a model wrote. Returns it in canonical form: without a fragment and without the dot at the end of the
 * host. Throws `invalid_argument` for a URL that is not http or https, or that contains a user name or password.
 */
export function webUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  // Of two dots at the end of a host, each reading would remove one.
  if (url === null || url.hostname.endsWith(".."))
    throw new Fault("invalid_argument", `invalid URL ${JSON.stringify(text)}: use an http or https URL`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new Fault("invalid_argument", `${url.protocol} is not fetched: use an http or https URL`);
  if (url.username !== "" || url.password !== "")
    throw new Fault("invalid_argument", "a URL with a user name or password is not fetched: leave them out");
  url.hash = "";
  if (url.hostname.endsWith(".")) url.hostname = url.hostname.slice(0, -1);
  return url;
}

/**
 * Compiles a list of hosts to a function that says whether a host is in the list. An entry is `example.com`,
 * `example.com:8080`, `*.example.com` for all names below it, or `*` for all hosts.
 */
export function hostList(entries: readonly string[]): (host: string) => boolean {
  const exact = new Set<string>();
  const below: string[] = [];
  for (const entry of entries) {
    if (entry === "*") return () => true;
    if (entry.startsWith("*.")) below.push(`.${hostEntry(entry, entry.slice(2))}`);
    else exact.add(hostEntry(entry, entry));
  }
  return (host) => exact.has(host) || below.some((end) => host.endsWith(end) && host.length > end.length);
}

/** Returns the canonical form of a host that a developer wrote. */
function hostEntry(entry: string, host: string): string {
  const url = URL.parse(`http://${host}`);
  const isHost = url !== null && !/[/?#@*\\\s]/u.test(host) && !/:(?:80|443)$/u.test(host);
  if (isHost) return canonicalHost(url);
  throw new Fault(
    "invalid_argument",
    `invalid host ${JSON.stringify(entry)}: expected a host such as "example.com", "example.com:8080" or "*.example.com", without a scheme, path or default port`,
  );
}
