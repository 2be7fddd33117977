import { join } from "node:path";
import { nearestName } from "../../../kernel/index.ts";
import { FileReader } from "../text/bounded-file.ts";
import { parseMarkdown } from "../text/front-matter.ts";
import type { Notices } from "../notices.ts";

/** A prompt that a user starts with `/name` and arguments. */
export interface PromptTemplate {
  /** Name of the file without `.md`. */
  readonly name: string;
  readonly description: string;
  /** Absolute path of the file. */
  readonly file: string;
  readonly body: string;
}

const maxTemplateBytes = 256 * 1024;
const validName = /^[a-z0-9][a-z0-9_-]{0,63}$/iu;

/** Reads the templates of several folders. If several templates have the same name, the first one is used. */
export async function readTemplates(
  sources: readonly { readonly folder: string; readonly within?: string }[],
  notices: Notices,
): Promise<readonly PromptTemplate[]> {
  const reader = new FileReader(notices);
  const found = new Map<string, PromptTemplate>();
  for (const { folder, ...options } of sources)
    for (const entry of await reader.list(folder, options)) {
      const [, name] = /^(.+)\.md$/u.exec(entry) ?? [];
      const path = join(folder, entry);
      if (name === undefined) continue;
      const file = await reader.read(path, { maxBytes: maxTemplateBytes, ...options });
      if (file === undefined) continue;
      const first = found.get(name);
      if (!validName.test(name))
        notices.add("warning", path, "the template is not used: rename the file to letters, digits, _ and -");
      else if (first !== undefined)
        notices.add("duplicate", path, `/${name} is already defined by ${first.file}, which is used`);
      else {
        try {
          const { data, body } = parseMarkdown(file.text, path);
          const { description } = data;
          found.set(name, {
            name,
            body,
            file: path,
            description: typeof description === "string" ? description : "",
          });
        } catch (error) {
          notices.add("warning", path, `the template is not used: ${(error as Error).message}`);
        }
      }
    }
  return [...found.values()];
}

/**
 * Inserts arguments into the body of a template: `$1` to `$9` stand for single arguments, `$@` and `$ARGUMENTS` for
 * all of them. A placeholder without an argument becomes empty. If the body has no placeholder, the arguments are
 * added at its end.
 */
export function fillTemplate(body: string, argumentText: string): string {
  const words = splitArguments(argumentText);
  let isUsed = false;
  const filled = body.replaceAll(/\$(?:([1-9])|@|ARGUMENTS\b)/gu, (_whole, position: string | undefined) => {
    isUsed = true;
    return position === undefined ? argumentText.trim() : (words[Number(position) - 1] ?? "");
  });
  return isUsed || argumentText.trim() === "" ? filled : `${filled}\n\n${argumentText.trim()}`;
}

/** Splits a text of arguments at spaces. Quotation marks keep spaces together. */
function splitArguments(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/gu)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** An input that begins with `/`: the name of a template or skill and its arguments. */
export interface SlashInput {
  readonly name: string;
  readonly argumentText: string;
}

/** Returns the parts of `/name arguments`. `undefined` for any other input, such as a path. */
export function parseSlash(input: string): SlashInput | undefined {
  const match = /^\/([a-z0-9][a-z0-9:_-]*)(?:\s+([\s\S]*))?$/iu.exec(input.trim());
  if (match === null) return undefined;
  const [, name = "", argumentText = ""] = match;
  return { name, argumentText };
}

/**
 * Returns a hint for an error text with the nearest name, such as `; did you mean /review`. Empty if no name is
 * similar.
 */
export function nearestSlash(name: string, names: readonly string[]): string {
  const nearest = nearestName(name, names);
  return nearest === undefined ? "" : `; did you mean /${nearest}`;
}
