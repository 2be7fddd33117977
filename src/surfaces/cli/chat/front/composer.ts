import { spawn } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reeveHome } from "../../../../capabilities/files/reeve-home.ts";
import type { JsonValue } from "../../../../kernel/index.ts";
import { imageParts } from "./images.ts";

/** Maximum number of texts that the arrow keys and the search can bring back. */
const mostKept = 500;

/**
 * The texts that a person has sent, in all conversations of all folders. Only the person may read the file with
 * these texts.
 */
export class PromptHistory {
  readonly #path = join(reeveHome(), "chat-history.jsonl");
  #texts: string[] = [];

  /** The texts, the oldest first. */
  get texts(): readonly string[] {
    return this.#texts;
  }

  async load(): Promise<void> {
    let lines: readonly string[];
    try {
      lines = (await readFile(this.#path, "utf8")).trimEnd().split("\n");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    this.#texts = lines.slice(-mostKept).flatMap(textOfLine);
    // The file is shortened now and then, so that it stays small.
    if (lines.length > 4 * mostKept)
      await writeFile(this.#path, this.#texts.map((text) => `${JSON.stringify(text)}\n`).join(""), {
        mode: 0o600,
      });
  }

  async add(text: string): Promise<void> {
    if (this.#texts.at(-1) === text) return;
    this.#texts.push(text);
    await mkdir(reeveHome(), { recursive: true });
    await appendFile(this.#path, `${JSON.stringify(text)}\n`, { mode: 0o600 });
  }
}

function textOfLine(line: string): readonly string[] {
  try {
    const text: unknown = JSON.parse(line);
    return typeof text === "string" ? [text] : [];
  } catch {
    // A line that a dying process has cut.
    return [];
  }
}

/**
 * Converts a text to an input: images that the text names as `@picture.png` become content parts, and the outputs
 * of commands are put before the text.
 */
export async function inputOf(text: string, folder: string, outputs: readonly string[]): Promise<JsonValue> {
  const whole = [...outputs, text].join("\n\n");
  const images = await imageParts(text, folder);
  return images.length === 0 ? whole : [{ type: "text", text: whole }, ...images];
}

/** Opens a text in an editor and waits until the person closes it. Returns the changed text. */
export async function editText(text: string, editor: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-chat-"));
  try {
    const path = join(folder, "prompt.md");
    await writeFile(path, text, { mode: 0o600 });
    await new Promise<void>((resolve, reject) => {
      const child = spawn(`${editor} "$REEVE_PROMPT"`, {
        shell: true,
        stdio: "inherit",
        env: { ...process.env, REEVE_PROMPT: path },
      });
      child.on("error", reject);
      child.on("close", () => resolve());
    });
    return (await readFile(path, "utf8")).replace(/\n$/u, "");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
