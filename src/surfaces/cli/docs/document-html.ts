import { marked, type Token, type Tokens } from "marked";
import { escapeMarkup } from "../../../kernel/index.ts";

/** A heading of a document. */
export interface Heading {
  readonly level: number;
  /** The part of the heading's address after `#`, as on GitHub. */
  readonly anchor: string;
  readonly text: string;
}

/** A document as HTML. */
export interface ShownDocument {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
}

/**
 * Returns a function that makes the anchors for the headings of one document. Equal headings get different anchors.
 */
export function anchorMaker(): (heading: string) => string {
  const counts = new Map<string, number>();
  return (heading) => {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/gu, "-");
    const count = counts.get(slug) ?? 0;
    counts.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  };
}

/**
 * Turns a document into HTML. Relative links are not changed, because a document is served under the path of its
 * file. `hasPicture` returns whether the file of a picture exists. In place of a missing picture its text is shown.
 */
export function showDocument(markdown: string, hasPicture: (path: string) => boolean): ShownDocument {
  const anchorOf = anchorMaker();
  const headings: Heading[] = [];

  function block(token: Token): string {
    switch (token.type) {
      case "space":
      case "def":
        return "";
      case "heading": {
        const { depth, tokens, text } = token as Tokens.Heading;
        const words = plain(text);
        const anchor = anchorOf(words);
        headings.push({ level: depth, anchor, text: words });
        return `<h${depth} id="${escapeMarkup(anchor)}">${line(tokens)}</h${depth}>\n`;
      }
      case "paragraph":
        return `<p>${line((token as Tokens.Paragraph).tokens)}</p>\n`;
      case "code":
        // A box that scrolls can be reached with the keyboard.
        return `<pre tabindex="0"><code>${escapeMarkup((token as Tokens.Code).text)}</code></pre>\n`;
      case "blockquote":
        return `<blockquote>${blocks((token as Tokens.Blockquote).tokens)}</blockquote>\n`;
      case "hr":
        return "<hr>\n";
      case "list":
        return list(token as Tokens.List);
      case "table":
        return table(token as Tokens.Table);
      default:
        return inline(token);
    }
  }

  function blocks(tokens: readonly Token[] = []): string {
    return tokens.map(block).join("");
  }

  function list({ ordered, start, items }: Tokens.List): string {
    const tag = ordered ? "ol" : "ul";
    const from = ordered && typeof start === "number" && start !== 1 ? ` start="${start}"` : "";
    return `<${tag}${from}>${items.map((item) => `<li>${blocks(item.tokens)}</li>`).join("\n")}</${tag}>\n`;
  }

  function table({ header, rows }: Tokens.Table): string {
    const head = header.map(({ tokens }) => `<th scope="col">${line(tokens)}</th>`).join("");
    const body = rows.map(
      (row) => `<tr>${row.map(({ tokens }) => `<td>${line(tokens)}</td>`).join("")}</tr>`,
    );
    return `<div class="wide" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body.join("\n")}</tbody></table></div>\n`;
  }

  function line(tokens: readonly Token[] = []): string {
    return tokens.map(inline).join("");
  }

  function inline(token: Token): string {
    switch (token.type) {
      case "text": {
        const { tokens, text } = token as Tokens.Text;
        return tokens === undefined ? escapeMarkup(decoded(text)) : line(tokens);
      }
      case "escape":
        return escapeMarkup(decoded((token as Tokens.Escape).text));
      case "codespan":
        return `<code>${escapeMarkup(decoded((token as Tokens.Codespan).text))}</code>`;
      case "strong":
        return `<strong>${line((token as Tokens.Strong).tokens)}</strong>`;
      case "em":
        return `<em>${line((token as Tokens.Em).tokens)}</em>`;
      case "del":
        return `<del>${line((token as Tokens.Del).tokens)}</del>`;
      case "br":
        return "<br>";
      case "link": {
        const { href, tokens } = token as Tokens.Link;
        return `<a href="${escapeMarkup(href)}">${line(tokens)}</a>`;
      }
      case "image":
        return picture(token as Tokens.Image);
      default:
        return escapeMarkup(token.raw);
    }
  }

  function picture({ href, text }: Tokens.Image): string {
    const words = escapeMarkup(decoded(text));
    if (!hasPicture(href)) return `<span class="picture">Picture: ${words}</span>`;
    return `<img src="${escapeMarkup(href)}" alt="${words}" loading="lazy">`;
  }

  const html = blocks(marked.lexer(markdown));
  return { title: headings[0]?.text ?? "", html, headings };
}

/**
 * Decodes entities: some versions of the lexer return the text of a token with entities in place of `&`, `<`, `>`
 * and quotes.
 */
function decoded(text: string): string {
  return text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}

/** Removes the Markdown marks from a line and keeps the text. */
export function plain(markdown: string): string {
  return markdown.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/gu, "$1").replaceAll(/[`*]|\\(?=[<>_|])/gu, "");
}
