import { glob } from "tinyglobby";
import { visibleLine } from "../../../../kernel/index.ts";
import type { Result } from "../../../server/route-values.ts";
import type { Completions } from "../screen/screen.ts";
import { chatCommands } from "./chat-commands.ts";
import { imageName } from "./images.ts";

/** What an agent offers as `/NAME`. */
export type AgentCommand = Result<"GET", "/api/agents/{name}/commands">["commands"][number];

/** How long a list of files is used. */
const freshMs = 5_000;
const mostFiles = 20_000;
const mostShown = 50;

/** Completes the names of commands at the beginning of a text, and the names of files after `@`. */
export class Completer {
  readonly #folder: string;
  #files: { readonly readAt: number; readonly paths: Promise<readonly string[]> } | undefined;
  /** The commands that the agent offers in addition to those of the chat. */
  commands: readonly AgentCommand[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  async complete(before: string, isAsked: boolean): Promise<Completions | null> {
    const command = /^\/(?<typed>[\w:-]*)$/u.exec(before)?.groups?.["typed"];
    if (command !== undefined) return this.#commandsFor(before, command);
    const line = before.slice(before.lastIndexOf("\n") + 1);
    const word = /(?:^|\s)(?<typed>@"[^"]*|@?[^\s]*)$/u.exec(line)?.groups?.["typed"] ?? "";
    if (!word.startsWith("@") && !(isAsked && word !== "")) return null;
    const mark = /^@"?/u.exec(word)?.[0] ?? "";
    const wanted = word.slice(mark.length).toLowerCase();
    const found = (await this.#paths()).filter((path) => path.toLowerCase().includes(wanted));
    const ranked = found
      .toSorted((one, other) => rank(one, wanted) - rank(other, wanted))
      .slice(0, mostShown);
    return {
      prefix: word,
      items: ranked.map((path) => ({
        value: completed(path, mark !== ""),
        label: visibleLine(path),
      })),
    };
  }

  #commandsFor(prefix: string, typed: string): Completions {
    const own = chatCommands.map(({ name, takes, about }) => ({
      name,
      description: about,
      takesText: takes !== "",
    }));
    const offered = this.commands.map((each) => ({ ...each, takesText: true }));
    const known = new Set(own.map(({ name }) => name));
    const all = [...own, ...offered.filter(({ name }) => !known.has(name))];
    return {
      prefix,
      items: all
        .filter(({ name }) => name.startsWith(typed))
        .map(({ name, description, takesText }) => ({
          value: `/${name}${takesText ? " " : ""}`,
          label: `/${visibleLine(name)}`,
          description: visibleLine(description),
        })),
    };
  }

  #paths(): Promise<readonly string[]> {
    const now = Date.now();
    if (this.#files !== undefined && now - this.#files.readAt < freshMs) return this.#files.paths;
    const paths = glob("**/*", {
      cwd: this.#folder,
      ignore: ["**/node_modules/**", "**/.git/**", "**/dist/**"],
      onlyFiles: false,
      expandDirectories: false,
      followSymbolicLinks: false,
      deep: 12,
    }).then((found) => found.slice(0, mostFiles));
    this.#files = { readAt: now, paths };
    return paths;
  }
}

/** What a completion writes. The quotes of a folder stay open, so that it can be completed further. */
function completed(path: string, isNamed: boolean): string {
  const isFolder = path.endsWith("/");
  if (!isNamed) return `${path}${isFolder ? "" : " "}`;
  return isFolder ? imageName(path).replace(/"? $/u, "") : imageName(path);
}

/** Returns the sort rank of a file path: files whose name begins with the text come first, then short paths. */
function rank(path: string, wanted: string): number {
  const name = path.slice(path.replace(/\/$/u, "").lastIndexOf("/") + 1).toLowerCase();
  return (name.startsWith(wanted) ? 0 : 1_000_000) + path.length;
}
