/** Names that other programs give to tools of Reeve, in lower case. */
const otherNames: Readonly<Record<string, string>> = {
  glob: "find",
  webfetch: "fetch",
  todowrite: "todo",
  shell: "bash",
  askuserquestion: "ask_human",
};

/**
 * Returns the name in Reeve of a tool that a file names, such as `read` for `Read`. Patterns are returned
 * unchanged.
 */
export function ownToolName(name: string): string {
  const lower = name.toLowerCase();
  if (name.includes("*") || name.includes("__")) return name;
  return Object.hasOwn(otherNames, lower) ? (otherNames[lower] ?? lower) : lower;
}

/** A tool that a skill approves in advance. */
export interface AllowedTool {
  readonly tool: string;
  /** Whether the arguments of a call are among those that the skill approves. */
  fits(input: unknown): boolean;
}

/**
 * Reads an entry of `allowed-tools`. `Read` approves every call of a tool. `Bash(git status:*)` approves commands
 * that consist of `git status` and further words; `Bash(git status)` only this command. A command with an operator
 * of the shell, a variable or a second line is never approved, because it may run something else. For other forms,
 * which approve nothing, it returns `undefined`.
 */
export function readAllowedTool(entry: string): AllowedTool | undefined {
  const match = /^([\w*-]+)(?:\((.*)\))?$/u.exec(entry.trim());
  if (match === null) return undefined;
  const [, name = "", pattern] = match;
  const tool = ownToolName(name);
  if (pattern === undefined) return { tool, fits: () => true };
  if (tool !== "bash") return undefined;
  const isPrefix = pattern.endsWith(":*");
  const words = wordsOf(isPrefix ? pattern.slice(0, -2) : pattern);
  if (words === undefined || words.length === 0) return undefined;
  return {
    tool,
    fits: (input) => {
      const command = (input as { readonly command?: unknown } | null)?.command;
      const used = typeof command === "string" ? wordsOf(command) : undefined;
      if (used === undefined || (!isPrefix && used.length !== words.length)) return false;
      return words.every((word, index) => used[index] === word);
    },
  };
}

/** Returns the words of a plain command, or `undefined` if the text contains anything that a shell interprets. */
function wordsOf(command: string): readonly string[] | undefined {
  if (!/^[\w\s./:=@%+,~^-]*$/u.test(command) || /[\n\r]/u.test(command)) return undefined;
  return command.trim().split(/\s+/u).filter(Boolean);
}
