import { platformOf, type Channel, type Platform } from "../../../kernel/index.ts";

/** Rules for the form of answers, by the platform on which a person reads them. */
const hints: Readonly<Record<Platform, string>> = {
  terminal:
    "You answer in a terminal. Write plain text or simple Markdown, with short lines and without tables wider than 80 characters. Images cannot be shown.",
  web: "You answer on a web page that renders Markdown: headings, lists, tables, links and fenced code blocks are shown as such.",
  telegram:
    "You answer in Telegram. Keep a message under 4,096 characters. Bold, italic, code, code blocks and links are shown; headings, tables and nested lists are not. Prefer short paragraphs.",
  discord:
    "You answer in Discord. Keep a message under 2,000 characters. Markdown with bold, italic, lists, quotes and code blocks is shown; tables are not. Put several links into <> to avoid previews.",
  slack:
    "You answer in Slack, in its own markup: *bold*, _italic_, `code`, code blocks, > quotes and <https://example.com|links>. Headings and tables are not shown. Keep a message under 4,000 characters.",
  email:
    "You answer by email. Write a complete message in plain text with a greeting and a closing. Do not use Markdown. The reader cannot reply in real time, so do not end with a question unless you need its answer.",
};

/** Returns the rules for a channel. `null` is the terminal. A channel of another platform has no rules. */
export function platformHint(channel: Channel | null): string {
  const platform = platformOf(channel);
  return platform === undefined ? "" : hints[platform];
}
