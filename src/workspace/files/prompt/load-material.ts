import { join } from "node:path";
import { FileReader } from "../text/bounded-file.ts";
import type { LoadedWorkspace } from "../load.ts";
import { Notices, type WorkspaceNotice } from "../notices.ts";
import { readKnowledge } from "../skills/knowledge.ts";
import { readInstructionFiles } from "./instruction-files.ts";
import type { DocumentTitle, PromptMaterial } from "./system-prompt.ts";

/** Maximum size of a file that describes the persona, the memory or the user, in bytes. */
const maxPersonBytes = 64 * 1024;

/** Prefix of the paths by which the tool `knowledge` reads the documentation. */
export const docsPrefix = "reeve/";

/**
 * Reads everything that prompts are made of. The persona, the memory and the facts about the user come from the
 * profile, or without a profile from the folder of the user. They never come from a project, which could otherwise
 * speak in the name of the user.
 */
export async function loadMaterial(
  { places, settings, skills, system }: LoadedWorkspace,
  docsFolder: string | undefined,
): Promise<{ readonly material: PromptMaterial; readonly notices: readonly WorkspaceNotice[] }> {
  const { home, profile, project, projectFolder, instructionsRoot, cwd } = places;
  const notices = new Notices();
  const person = (name: string): Promise<string | undefined> =>
    personFile(join(profile?.folder ?? home, name), notices);
  const [soul, agent, memory, user] = [
    await person("SOUL.md"),
    await person("AGENT.md"),
    await person("MEMORY.md"),
    await person("USER.md"),
  ];
  const knowledge = [
    ...(profile === undefined ? [] : [{ folder: join(profile.folder, "knowledge") }]),
    { folder: join(home, "knowledge") },
    ...(projectFolder === undefined ? [] : [{ folder: join(projectFolder, "knowledge"), within: project }]),
  ];
  const material: PromptMaterial = {
    docs: docsFolder === undefined ? [] : await docTitles(docsFolder, notices),
    knowledge: await readKnowledge(knowledge, notices),
    skills,
    instructions: await readInstructionFiles({ home, root: instructionsRoot, cwd }, notices),
    ...(system !== undefined && { system }),
    ...(soul !== undefined && { soul }),
    ...(agent !== undefined && { agent }),
    ...(memory !== undefined && { memory }),
    ...(user !== undefined && { user }),
    ...(settings.appendSystemPrompt !== undefined && { append: settings.appendSystemPrompt }),
  };
  return { material, notices: notices.all };
}

async function personFile(path: string, notices: Notices): Promise<string | undefined> {
  const file = await new FileReader(notices).read(path, { maxBytes: maxPersonBytes });
  if (file === undefined || file.text.trim() === "") return undefined;
  if (!file.isCut) return file.text;
  notices.add("cut", path, `only its first ${maxPersonBytes} of ${file.bytes} bytes are part of the prompt`);
  return `${file.text}\n[cut: the file has ${file.bytes} bytes]`;
}

/**
 * The titles of the documentation by folder. They are cached, because the documentation of an installed package
 * does not change while a process runs.
 */
const knownTitles = new Map<string, readonly DocumentTitle[]>();

/**
 * The folders of the documentation that the prompt lists. The list is short, because each page costs tokens in
 * every request.
 */
const listedParts: ReadonlySet<string> = new Set(["guides", "operations", "reference"]);

/** Returns the files in the folders of the documentation, each with its first heading. */
async function docTitles(folder: string, notices: Notices): Promise<readonly DocumentTitle[]> {
  const known = knownTitles.get(folder);
  if (known !== undefined) return known;
  const reader = new FileReader(notices);
  const titles: DocumentTitle[] = [];
  for (const part of await reader.list(folder)) {
    if (!listedParts.has(part)) continue;
    for (const name of await reader.list(join(folder, part))) {
      if (!name.endsWith(".md")) continue;
      const file = await reader.read(join(folder, part, name), { maxBytes: 1_024 });
      const title = /^#\s+(.+)$/mu.exec(file?.text ?? "")?.[1] ?? name;
      titles.push({ path: `${docsPrefix}${part}/${name}`, title });
    }
  }
  knownTitles.set(folder, titles);
  return titles;
}
