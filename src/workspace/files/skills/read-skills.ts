import { basename, join } from "node:path";
import { checkSkill, Fault, type JsonObject, type Skill } from "../../../kernel/index.ts";
import {
  FileReader,
  isFolder,
  isRegularFile,
  problemOf,
  readNamedFile,
  readTextFile,
} from "../text/bounded-file.ts";
import { parseMarkdown } from "../text/front-matter.ts";
import type { Notices } from "../notices.ts";

/** A skill from a folder. */
export interface FileSkill extends Skill {
  /** Absolute path of the folder. */
  readonly folder: string;
  /** Absolute path of `SKILL.md`. */
  readonly file: string;
  /** Where the skill comes from: `project`, `profile`, `home` or `built-in`. */
  readonly origin: string;
  /** Whether the user has approved the files. If not, `allowedTools` has no effect. */
  readonly isTrusted: boolean;
  /** Tools that the skill declares as approved in advance while it is in use. */
  readonly allowedTools: readonly string[];
}

/** A folder whose subfolders are skills. */
export interface SkillSource {
  readonly folder: string;
  readonly origin: string;
  readonly isTrusted: boolean;
  /** Folder that links must not leave. If absent, links may lead anywhere. */
  readonly within?: string;
}

/** Maximum size of a `SKILL.md` in bytes. */
const maxSkillBytes = 256 * 1024;
const known = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/** Keys that other programs use and that have no effect here. Only the first one is read, as `hidden`. */
const foreign = ["disable-model-invocation", "argument-hint", "user-invocable", "version", "model"];

/**
 * Reads the skills of several folders. If several skills have the same name, the first one is used, and a notice
 * names each of the others. A skill that violates the specification (agentskills.io) gives a notice and is left
 * out.
 */
export async function readSkills(
  sources: readonly SkillSource[],
  notices: Notices,
): Promise<readonly FileSkill[]> {
  const reader = new FileReader(notices);
  const found = new Map<string, FileSkill>();
  for (const source of sources)
    for (const name of await reader.list(source.folder, source)) {
      const skill = await readSkill(join(source.folder, name), source, notices);
      if (skill === undefined) continue;
      const first = found.get(skill.name);
      if (first === undefined) found.set(skill.name, skill);
      else
        notices.add(
          "duplicate",
          skill.file,
          `skill ${skill.name} is already defined by ${first.file}, which is used`,
        );
    }
  return [...found.values()];
}

async function readSkill(
  folder: string,
  { origin, isTrusted, within }: SkillSource,
  notices: Notices,
): Promise<FileSkill | undefined> {
  const file = await skillFile(folder);
  if (file === undefined) return undefined;
  const options = { maxBytes: maxSkillBytes, ...(within !== undefined && { within }) };
  try {
    const read = await readTextFile(file, options);
    if (read === undefined) return undefined;
    if (read.isCut) throw new Fault("invalid_argument", `it is longer than ${maxSkillBytes} bytes`);
    const { data } = parseMarkdown(read.text, file);
    return checkedSkill(data, { folder, file, origin, isTrusted, options }, notices);
  } catch (error) {
    notices.add("warning", file, `the skill is not used: ${problemOf(error)}`);
    return undefined;
  }
}

/** Returns the path of the file of a skill. Of the two allowed spellings, the specification prefers upper case. */
async function skillFile(folder: string): Promise<string | undefined> {
  if (!(await isFolder(folder))) return undefined;
  for (const name of ["SKILL.md", "skill.md"])
    if (await isRegularFile(join(folder, name))) return join(folder, name);
  return undefined;
}

interface Found extends Omit<SkillSource, "within"> {
  readonly file: string;
  readonly options: { readonly maxBytes: number; readonly within?: string };
}

function checkedSkill(
  data: JsonObject,
  { folder, file, origin, isTrusted, options }: Found,
  notices: Notices,
): FileSkill {
  const { name, description, compatibility } = data;
  const normal = typeof name === "string" ? name.trim().normalize("NFKC") : "";
  const skill = checkSkill({
    name: normal,
    description: typeof description === "string" ? description.trim() : "",
    hidden: data["disable-model-invocation"] === true,
    read: async () => {
      const read = await readNamedFile("skill file", file, options);
      if (read === undefined) throw new Fault("not_found", `the skill file ${file} does not exist any more`);
      return parseMarkdown(read.text, file).body;
    },
  });
  if (/^-|-$|--/u.test(normal))
    throw new Fault(
      "invalid_argument",
      `invalid skill name "${normal}": remove - at its start or end, and --`,
    );
  if (normal !== basename(folder).normalize("NFKC"))
    throw new Fault(
      "invalid_argument",
      `the name "${normal}" differs from the folder ${basename(folder)}; rename one of them`,
    );
  if (compatibility !== undefined && (typeof compatibility !== "string" || compatibility.length > 500))
    throw new Fault("invalid_argument", "invalid compatibility: expected a text of at most 500 characters");
  for (const key of Object.keys(data))
    if (!known.includes(key) && !foreign.includes(key))
      notices.add("warning", file, `unknown key ${JSON.stringify(key)} of a skill: move it below metadata`);
  return { ...skill, folder, file, origin, isTrusted, allowedTools: allowedTools(data["allowed-tools"]) };
}

/**
 * Reads the list of allowed tools. The specification allows a list, or a text with spaces between the entries. An
 * entry such as `Bash(git status:*)` itself contains spaces.
 */
function allowedTools(value: unknown): readonly string[] {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return value.match(/[^\s,(]+(?:\([^)]*\))?/gu) ?? [];
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value;
  throw new Fault(
    "invalid_argument",
    "invalid allowed-tools: expected a text with spaces, or a list of texts",
  );
}

/** Returns a file of a skill. Throws if the path leads out of the folder of the skill, also through a link. */
export async function readSkillFile({ folder }: Pick<FileSkill, "folder">, path: string): Promise<string> {
  const file = await readNamedFile("skill file", join(folder, path), {
    maxBytes: maxSkillBytes,
    within: folder,
  });
  if (file === undefined) throw new Fault("not_found", `the skill has no file ${path}`);
  return file.isCut ? `${file.text}\n[cut: the file has ${file.bytes} bytes]` : file.text;
}
