import { stat } from "node:fs/promises";
import { Fault } from "../../kernel/index.ts";
import { maxAgentBytes, readAgentFile } from "./agent-file.ts";
import { Notices } from "./notices.ts";
import { readNamedFile, type ReadOptions } from "./text/bounded-file.ts";
import { parseMarkdown } from "./text/front-matter.ts";
import { replaceText } from "./text/replace-text.ts";
import { textHash } from "./trust/text-hashes.ts";

/** The instructions of an agent in its Markdown file. */
export interface SavedInstructions {
  readonly path: string;
  readonly instructions: string;
  /** Hash of the whole text of the file. */
  readonly hash: string;
}

/** Reads the instructions of an agent from the current state of its file. */
export async function readInstructions(
  path: string,
  options: Pick<ReadOptions, "within">,
): Promise<SavedInstructions> {
  const { instructions, hash } = await readAgentFile(path, new Notices(), options);
  return { path, instructions, hash };
}

/**
 * Replaces all instructions in the Markdown file of an agent, and leaves the front matter unchanged, byte by byte.
 * Throws `version_mismatch` if the hash of the file is not `hash`. After a crash, the file is either the old or the
 * new one.
 */
export async function saveInstructions(
  path: string,
  instructions: string,
  hash: string,
  options: Pick<ReadOptions, "within">,
): Promise<SavedInstructions> {
  const before = await readWhole(path, options);
  if (textHash(before) !== hash)
    throw new Fault(
      "version_mismatch",
      `${path} has changed since you read it, and was not saved; look at the new text and save again`,
      { details: { path } },
    );
  const text = replacedBody(before, instructions.trim(), path);
  if (Buffer.byteLength(text) > maxAgentBytes)
    throw new Fault(
      "too_large",
      `${path} was not saved: an agent file has at most ${maxAgentBytes} bytes; shorten the instructions`,
    );
  const { mode } = await stat(path);
  await replaceText(path, text, {
    mode: mode & 0o777,
    // Another program may have written while the new text was stored beside the file.
    before: async () => {
      if (textHash(await readWhole(path, options)) !== hash)
        throw new Fault(
          "version_mismatch",
          `${path} was changed during the save, and was not saved; save again`,
        );
    },
  });
  return readInstructions(path, options);
}

async function readWhole(path: string, options: Pick<ReadOptions, "within">): Promise<string> {
  const file = await readNamedFile("agent file", path, { maxBytes: maxAgentBytes, ...options });
  if (file === undefined) throw new Fault("not_found", `the agent file ${path} does not exist`);
  return file.text;
}

/** Returns the text with another body. Throws if the new body would be read as front matter. */
function replacedBody(text: string, body: string, path: string): string {
  const { body: old } = parseMarkdown(text, path);
  const at = old === "" ? text.trimEnd().length : text.lastIndexOf(old);
  const head = text.slice(0, at).trimEnd();
  const changed = head === "" ? `${body}\n` : `${head}\n\n${body}\n`;
  if (parseMarkdown(changed, path).body !== body)
    throw new Fault(
      "invalid_argument",
      `the instructions for ${path} begin with a line ---, which would be read as front matter; begin with other words`,
    );
  return changed;
}
