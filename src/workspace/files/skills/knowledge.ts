import { join } from "node:path";
import { describeValue, Fault, type JsonObject } from "../../../kernel/index.ts";
import { FileReader, isBelow, readNamedFile } from "../text/bounded-file.ts";
import { parseYaml } from "../text/yaml-text.ts";
import type { Notices } from "../notices.ts";

/** A document that an agent knows about. */
export interface KnowledgeDocument {
  /** Path relative to the knowledge folder, with `/` as separator. It is the name of the document. */
  readonly path: string;
  /** Absolute path of the file. */
  readonly file: string;
  /** Folder that links may not leave. */
  readonly within: string;
  readonly description?: string;
  readonly priority: "high" | "normal" | "low";
  readonly tags: readonly string[];
  /**
   * Content of a document that is always part of the prompt. `undefined` if the model reads the document when it
   * needs it.
   */
  readonly content?: string;
}

/** A folder with documents. */
export interface KnowledgeSource {
  readonly folder: string;
  /** Folder that links must not leave. Default: the knowledge folder itself. */
  readonly within?: string;
}

/**
 * Maximum size of a document that the model reads when it needs it, and of one that is always part of the prompt,
 * in bytes.
 */
const maxDocumentBytes = 64 * 1024;
const maxKnowledgeBytes = 256 * 1024;

const priorities = ["high", "normal", "low"] as const;

/**
 * Reads the knowledge of several folders. If a folder has an `index.yaml`, only the documents that it lists are
 * read; otherwise every Markdown file is available on demand. If several documents have the same path, the first
 * one is used.
 */
export async function readKnowledge(
  sources: readonly KnowledgeSource[],
  notices: Notices,
): Promise<readonly KnowledgeDocument[]> {
  const found = new Map<string, KnowledgeDocument>();
  for (const source of sources)
    for (const document of await documentsOf(source, notices)) {
      const first = found.get(document.path);
      if (first === undefined) found.set(document.path, document);
      else
        notices.add(
          "duplicate",
          document.file,
          `${document.path} is already defined by ${first.file}, which is used`,
        );
    }
  return [...found.values()];
}

async function documentsOf(
  { folder, within = folder }: KnowledgeSource,
  notices: Notices,
): Promise<readonly KnowledgeDocument[]> {
  const index = join(folder, "index.yaml");
  const reader = new FileReader(notices);
  const file = await reader.read(index, { maxBytes: maxKnowledgeBytes, within });
  if (file === undefined) {
    const names = (await reader.list(folder, { within })).filter((name) => name.endsWith(".md"));
    return names.map((path) => ({
      path,
      file: join(folder, path),
      within,
      priority: "normal",
      tags: [],
    }));
  }
  try {
    const entries = parseYaml(file.text, index) ?? [];
    if (!Array.isArray(entries))
      throw new Fault("invalid_argument", `invalid ${index}: expected a list of documents`);
    const documents: KnowledgeDocument[] = [];
    for (const entry of entries)
      documents.push(...(await readEntry(entry, { folder, within, index }, notices)));
    return documents;
  } catch (error) {
    notices.add("warning", index, `the knowledge is not used: ${(error as Error).message}`);
    return [];
  }
}

async function readEntry(
  entry: unknown,
  { folder, within, index }: Required<KnowledgeSource> & { readonly index: string },
  notices: Notices,
): Promise<readonly KnowledgeDocument[]> {
  const {
    path,
    always_load: always = false,
    priority = "normal",
    tags = [],
    description,
  } = checkedEntry(entry, index);
  const file = join(folder, path);
  const document = {
    path,
    file,
    within,
    priority,
    tags,
    ...(description !== undefined && { description }),
  };
  const read = await new FileReader(notices).read(file, { maxBytes: maxDocumentBytes, within });
  if (read === undefined) {
    notices.add("warning", index, `the document ${path} does not exist or cannot be used`);
    return [];
  }
  if (!always) return [document];
  if (read.isCut) notices.add("cut", file, `only its first ${maxDocumentBytes} bytes are part of the prompt`);
  return [
    {
      ...document,
      content: read.isCut ? `${read.text}\n[cut: the file has ${read.bytes} bytes]` : read.text,
    },
  ];
}

interface Entry {
  readonly path: string;
  readonly always_load?: boolean;
  readonly priority?: KnowledgeDocument["priority"];
  readonly tags?: readonly string[];
  readonly description?: string;
}

function checkedEntry(entry: unknown, index: string): Entry {
  const refuse = (what: string): Fault => new Fault("invalid_argument", `invalid entry of ${index}: ${what}`);
  if (typeof entry !== "object" || entry === null || Array.isArray(entry))
    throw refuse(`expected an object with a path, not ${describeValue(entry)}`);
  const { path, always_load: always, priority, tags, description } = entry as JsonObject;
  if (typeof path !== "string" || path === "") throw refuse("the path is missing");
  if (!isBelow(join("/knowledge", path), "/knowledge") || path.includes("\0"))
    throw refuse(`the path ${JSON.stringify(path)} leads outside the folder`);
  if (always !== undefined && typeof always !== "boolean")
    throw refuse(`always_load of ${path} is not true or false`);
  if (priority !== undefined && !(priorities as readonly unknown[]).includes(priority))
    throw refuse(`priority of ${path} is none of ${priorities.join(", ")}`);
  if (tags !== undefined && !(Array.isArray(tags) && tags.every((tag) => typeof tag === "string")))
    throw refuse(`tags of ${path} are not a list of texts`);
  if (description !== undefined && typeof description !== "string")
    throw refuse(`description of ${path} is not a text`);
  return entry as unknown as Entry;
}

/** Returns the current text of a document. Throws `not_found` if the file does not exist any more. */
export async function readDocument({
  file,
  within,
}: Pick<KnowledgeDocument, "file" | "within">): Promise<string> {
  const read = await readNamedFile("document", file, { maxBytes: maxKnowledgeBytes, within });
  if (read === undefined) throw new Fault("not_found", `the document ${file} does not exist`);
  return read.isCut ? `${read.text}\n[cut: the file has ${read.bytes} bytes]` : read.text;
}
