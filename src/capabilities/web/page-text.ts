/** Elements whose content is not readable text. */
const silent = new Set([
  "script",
  "style",
  "noscript",
  "template",
  "svg",
  "head",
  "iframe",
  "canvas",
  "title",
]);
/** Elements that start a new line. */
const blocks = new Set(
  "address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table tr ul option".split(
    " ",
  ),
);

/**
 * Returns the text of an HTML page: blocks as lines, links with their URL, headings and list items marked. Reads the
 * page in one pass, so the time is linear for any input.
 */
export function pageText(html: string): string {
  const title = /<title[^>]{0,200}>([^<]{0,500})/i.exec(html.slice(0, 65_536))?.[1]?.trim();
  const out: string[] = title ? [`# ${title}\n\n`] : [];
  let at = 0;
  let href: string | undefined;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open === -1) {
      out.push(spaced(html.slice(at)));
      break;
    }
    out.push(spaced(html.slice(at, open)));
    if (html.startsWith("<!--", open)) {
      at = after(html, "-->", open + 4);
      continue;
    }
    if (!/[a-z/!?]/i.test(html[open + 1] ?? "")) {
      // A plain character, not a tag: "a < b".
      out.push("<");
      at = open + 1;
      continue;
    }
    const end = tagEnd(html, open);
    const tag = html.slice(open + 1, end - 1);
    const name = /^\/?\s*([a-z][a-z0-9]*)/i.exec(tag)?.[1]?.toLowerCase();
    at = end;
    if (name === undefined) continue;
    const isClosing = tag.startsWith("/");
    if (!isClosing && silent.has(name) && !tag.endsWith("/")) at = after(html, `</${name}`, end, true);
    else if (blocks.has(name)) out.push(isClosing ? "\n" : lead(name));
    else if (name === "a" && !isClosing) href = hrefOf(tag);
    else if (name === "a" && href !== undefined) {
      out.push(` (${href})`);
      href = undefined;
    } else if (name === "td" || name === "th") out.push(isClosing ? " | " : "");
  }
  return tidy(decodeEntities(out.join("")));
}

function lead(name: string): string {
  if (/^h[1-6]$/.test(name)) return `\n\n${"#".repeat(Number(name[1]))} `;
  if (name === "li") return "\n- ";
  return name === "p" ? "\n\n" : "\n";
}

function hrefOf(tag: string): string | undefined {
  const [, quoted, single, bare] = /\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(tag) ?? [];
  const href = quoted ?? single ?? bare;
  return href !== undefined && /^https?:/i.test(href) ? href : undefined;
}

/** Returns the index after the tag. A `>` inside quotes does not end a tag. */
function tagEnd(html: string, open: number): number {
  let quote = "";
  for (let at = open + 1; at < html.length; at++) {
    const sign = html[at];
    if (quote !== "") quote = sign === quote ? "" : quote;
    else if (sign === ">") return at + 1;
    else if ((sign === '"' || sign === "'") && html[at - 1] === "=") quote = sign;
  }
  return html.length + 1;
}

function after(html: string, what: string, from: number, isTag = false): number {
  if (!isTag) {
    const at = html.indexOf(what, from);
    return at === -1 ? html.length : at + what.length;
  }
  for (let at = html.indexOf("</", from); at !== -1; at = html.indexOf("</", at + 2))
    if (html.slice(at, at + what.length).toLowerCase() === what) return tagEnd(html, at);
  return html.length;
}

function spaced(text: string): string {
  return text.replaceAll(/[\t\n\r\f ]+/g, " ");
}

function tidy(text: string): string {
  const lines = text.split("\n").map((line) => line.replaceAll(/ {2,}/g, " ").trim());
  const kept = lines.filter((line, index) => line !== "" || (lines[index - 1] ?? "") !== "");
  return kept.join("\n").trim();
}

const entities: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  copy: "©",
  reg: "®",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  laquo: "«",
  raquo: "»",
  bull: "•",
  middot: "·",
  euro: "€",
  times: "×",
};

function decodeEntities(text: string): string {
  return text.replaceAll(/&(#x?[0-9a-f]{1,6}|[a-z]{2,8});/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return entities[name.toLowerCase()] ?? whole;
    const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
    const isCharacter =
      Number.isInteger(code) && code > 0 && code <= 0x10_ff_ff && (code < 0xd800 || code > 0xdfff);
    return isCharacter ? String.fromCodePoint(code) : whole;
  });
}
