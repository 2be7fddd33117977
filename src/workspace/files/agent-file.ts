import { basename } from "node:path";
import { describeValue, Fault } from "../../kernel/index.ts";
import { agentFields, hiredKeys, onlyHiredKeys, type AgentValues } from "./settings/agent-fields.ts";
import { checkFields } from "./settings/check-fields.ts";
import { readNamedFile, type ReadOptions } from "./text/bounded-file.ts";
import { parseMarkdown } from "./text/front-matter.ts";
import type { Notices } from "./notices.ts";
import { textHash } from "./trust/text-hashes.ts";

/** An agent that a Markdown file describes: its front matter, and its text. */
export interface AgentFile extends AgentValues {
  /** Name of the file without `.md`. */
  readonly name: string;
  readonly path: string;
  /** The instructions: the text after the front matter. */
  readonly instructions: string;
  /** Hash of the whole text. */
  readonly hash: string;
}

/** Maximum size of an agent file, in bytes. */
export const maxAgentBytes = 256 * 1024;
const validName = /^[a-z][a-z0-9_-]{0,63}$/iu;

/** Whether a text can be the name of an agent in a file. */
export function isAgentName(name: string): boolean {
  return validName.test(name);
}

/**
 * Reads an agent from a Markdown file. An unknown key is a warning that suggests the nearest one. Throws
 * `invalid_argument`, which names file and key, for a value of the wrong type.
 */
export async function readAgentFile(
  path: string,
  notices: Notices,
  options: Pick<ReadOptions, "within"> = {},
): Promise<AgentFile> {
  const file = await readNamedFile("agent file", path, { maxBytes: maxAgentBytes, ...options });
  if (file === undefined) throw new Fault("not_found", `the agent file ${path} does not exist`);
  if (file.isCut)
    throw new Fault(
      "invalid_argument",
      `invalid agent file ${path}: it is longer than ${maxAgentBytes} bytes`,
    );
  const { data, body } = parseMarkdown(file.text, path);
  const values = checkFields(data, agentFields, { path, notices, kind: "front matter" });
  checkHired(Object.keys(data), values.harness !== undefined, path);
  const name = basename(path, ".md");
  if (values.name !== undefined && values.name !== name)
    throw new Fault(
      "invalid_argument",
      `invalid "name" in ${path}: expected ${JSON.stringify(name)}, the name of the file, not ${describeValue(values.name)}`,
      { details: { path, key: "name" } },
    );
  return { ...values, name, path, instructions: body, hash: textHash(file.text) };
}

/** Length in characters above which a command is shown shortened. */
const longestCommand = 1_000;

/** Describes the program that an agent file starts. `undefined` for an agent of Reeve itself. */
export function hiredProgram({
  harness,
  command,
}: Pick<AgentValues, "harness" | "command">): string | undefined {
  if (harness === undefined) return undefined;
  if (command === undefined) return `the program of harness ${harness}`;
  const line = JSON.stringify(command);
  const cut = line.length - longestCommand;
  const shown = cut > 0 ? `${line.slice(0, longestCommand)} and ${cut} more characters` : line;
  return `the program ${shown} (harness ${harness})`;
}

/** Throws for a key that has no effect on a hired agent, and for a key that has an effect only on a hired agent. */
function checkHired(keys: readonly string[], isHired: boolean, path: string): void {
  const wrong = keys.find((key) => (isHired ? !includes(hiredKeys, key) : includes(onlyHiredKeys, key)));
  if (wrong === undefined) return;
  const why = isHired
    ? `an agent with harness may have ${hiredKeys.join(", ")}`
    : "only an agent with harness has it; add harness: acp";
  throw new Fault("invalid_argument", `invalid ${describeValue(wrong)} in ${path}: ${why}`, {
    details: { path, key: wrong },
  });
}

function includes(keys: readonly string[], key: string): boolean {
  return keys.includes(key);
}
