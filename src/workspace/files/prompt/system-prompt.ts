import {
  type Channel,
  type Platform,
  type PromptQuery,
  escapeMarkup,
  platformOf,
} from "../../../kernel/index.ts";
import type { Places, Profile } from "../places.ts";
import type { KnowledgeDocument } from "../skills/knowledge.ts";
import type { FileSkill } from "../skills/read-skills.ts";
import { skillBlock } from "../skills/skill-block.ts";
import type { InstructionFile } from "./instruction-files.ts";

/** Rules for the form of answers, by the platform on which a person reads the answers. */
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

/** Everything from which system prompts of a workspace are made, in the state in which the files were read. */
export interface PromptMaterial {
  /** Text of `SYSTEM.md`. */
  readonly system?: string;
  /** Text of `SOUL.md`. */
  readonly soul?: string;
  /** Text of `AGENT.md` of the profile, or without a profile, of the folder of the user. */
  readonly agent?: string;
  /** Documentation of the installed package. */
  readonly docs: readonly DocumentTitle[];
  readonly append?: string;
  readonly knowledge: readonly KnowledgeDocument[];
  readonly memory?: string;
  readonly user?: string;
  readonly skills: readonly FileSkill[];
  readonly instructions: readonly InstructionFile[];
}

/** A file of the documentation. */
export interface DocumentTitle {
  /** Path with which the tool `knowledge` reads the page, such as `reeve/guides/agents.md`. */
  readonly path: string;
  readonly title: string;
}

/** The agent for which a prompt is built. */
export interface PromptAgent {
  readonly name: string;
  /** Instructions of the agent's own file. Empty if the agent has no file. */
  readonly instructions: string;
  /** Whether the tool `read` can read a file. */
  readonly canRead: (path: string) => boolean;
}

const persona = `You are a capable assistant. Use your tools instead of guessing, and say so if you do not know something. Do what was asked and nothing beyond it. Answer briefly.`;

/**
 * Builds the part of a system prompt that stays the same for all sessions of an agent, profile, channel and tool set.
 * The order is fixed: identity, profile, documentation, appended text and knowledge, memory, user, skills,
 * instructions of the folders, platform.
 */
export function promptPrefix(
  material: PromptMaterial,
  agent: PromptAgent,
  { channel, toolNames }: Pick<PromptQuery, "channel" | "toolNames">,
): string {
  const canUse = (tool: string): boolean => toolNames.includes(tool);
  return sections([
    identity(material, agent),
    material.agent,
    canUse("knowledge") ? docsMap(material.docs) : "",
    material.append,
    knowledge(material.knowledge, agent, canUse),
    titled("Memory", material.memory),
    titled("User", material.user),
    skills(material.skills, agent, canUse),
    instructions(material.instructions),
    platformHint(channel),
  ]);
}

/**
 * Returns the identity of the agent: the default persona, or `SYSTEM.md` or `SOUL.md` in its place. The agent's own
 * instructions also replace the default persona; if there is a file, they follow it.
 */
function identity({ system, soul }: PromptMaterial, { instructions: own }: PromptAgent): string {
  const file = system ?? soul;
  if (file === undefined) return own === "" ? persona : own;
  return sections([file, own]);
}

function docsMap(docs: readonly DocumentTitle[]): string {
  if (docs.length === 0) return "";
  const lines = docs.map(({ path, title }) => `- ${path}: ${title}`);
  return `# Documentation of Reeve\n\nRead these files with the tool \`knowledge\`, only if the user asks about Reeve itself:\n${lines.join("\n")}`;
}

function knowledge(
  documents: readonly KnowledgeDocument[],
  { canRead }: PromptAgent,
  canUse: (tool: string) => boolean,
): string {
  const loaded = documents.flatMap(({ path, content }) =>
    content === undefined
      ? []
      : [`<knowledge path="${escapeMarkup(path)}">\n${content.trim()}\n</knowledge>`],
  );
  const listed = documents.filter(
    ({ content, file }) =>
      content === undefined && (canUse("knowledge") || (canUse("read") && canRead(file))),
  );
  const lines = listed.map(({ path, priority, tags, description }) => {
    const facts = { path, priority, tags: tags.join(","), description: description ?? "" };
    const attributes = Object.entries(facts).filter(([, value]) => value !== "");
    return `<doc ${attributes.map(([name, value]) => `${name}="${escapeMarkup(value)}"`).join(" ")} />`;
  });
  const list =
    lines.length === 0
      ? ""
      : `<available_knowledge>\n${lines.join("\n")}\n</available_knowledge>\n\nRead one of these documents when the task needs it.`;
  return titled("Knowledge", sections([...loaded, list]));
}

function skills(
  all: readonly FileSkill[],
  { canRead }: PromptAgent,
  canUse: (tool: string) => boolean,
): string {
  const usable = all.filter(
    ({ hidden = false, file }) => !hidden && (canUse("skill") || (canUse("read") && canRead(file))),
  );
  if (usable.length === 0) return "";
  const how = canUse("skill") ? "with the tool `skill`" : "by reading the file at its location";
  return titled(
    "Skills",
    `A skill explains how a task is done. If a skill fits the task, load it ${how} before you start, and follow it. Do not guess its content.\n\n${skillBlock(usable)}`,
  );
}

function instructions(files: readonly InstructionFile[]): string {
  const blocks = files.map(
    ({ path, text }) => `<instructions file="${escapeMarkup(path)}">\n${text}\n</instructions>`,
  );
  if (blocks.length === 0) return "";
  return titled(
    "Instructions of the project",
    sections(["Follow these instructions. Later files take precedence over earlier ones.", ...blocks]),
  );
}

function titled(title: string, text: string | undefined): string {
  return text === undefined || text.trim() === "" ? "" : `# ${title}\n\n${text.trim()}`;
}

function sections(parts: readonly (string | undefined)[]): string {
  return parts
    .flatMap((part) => (part === undefined || part.trim() === "" ? [] : [part.trim()]))
    .join("\n\n");
}

/** The facts about the session at the end of a prompt. */
export interface FooterFacts {
  readonly places: Places;
  /** Folder for scratch files of the profile. Absent if there is no such folder. */
  readonly temp?: string | undefined;
  readonly now: number;
  readonly sessionId: string | null;
}

/** Builds the end of a system prompt. It is the same within one session and day. */
export function promptFooter({ places, temp, now, sessionId }: FooterFacts): string {
  const { cwd, home, profile } = places;
  const lines = [
    `Current date: ${isoDay(now)}`,
    `Current working directory: ${cwd}`,
    `Global directory: ${home}`,
    ...(profile === undefined ? [] : profileLines(profile)),
    ...(temp === undefined ? [] : [`Profile temp directory: ${temp} (scratch files)`]),
    ...(profile === undefined || sessionId === null ? [] : [`Session ID: ${sessionId}`]),
  ];
  return lines.join("\n");
}

function profileLines({ folder }: Profile): readonly string[] {
  return [
    `Profile directory: ${folder}`,
    `Profile SOUL.md: ${folder}/SOUL.md (persona and identity)`,
    `Profile MEMORY.md: ${folder}/MEMORY.md (long-term memory)`,
    `Profile USER.md: ${folder}/USER.md (the user)`,
    `Profile skills directory: ${folder}/skills`,
    `Profile knowledge directory: ${folder}/knowledge`,
  ];
}

/** The local day, as `YYYY-MM-DD`. */
function isoDay(now: number): string {
  const date = new Date(now);
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
