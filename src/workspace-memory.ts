import { errorResult, tool } from "./capabilities/index.ts";
import { eventDraft, Fault, type Tool } from "./kernel/index.ts";
import { changeMemoryFile, memoryLimits, type MemoryFileName } from "./workspace/index.ts";

/** Where the memory files are, and who must know about a change. */
export interface MemoryFileToolOptions {
  /** Folder with `MEMORY.md` and `USER.md`. */
  readonly folder: string;
  /** Called after a file has changed. */
  readonly onChange: () => void;
}

/** Creates the tool with which a reviewer changes `MEMORY.md` and `USER.md`. Each change is an event `memory_write`. */
export function memoryFileTool({ folder, onChange }: MemoryFileToolOptions): Tool {
  const limits = Object.entries(memoryLimits).map(([name, bytes]) => `${name} at most ${bytes} bytes`);
  return tool({
    name: "update_memory_file",
    description: `Change a file of the long-term memory: MEMORY.md holds what is worth knowing in later conversations, USER.md what the user is like. Replace the text \`old\`, which must occur exactly once, by \`new\`; with an empty \`old\`, \`new\` is added at the end. ${limits.join(", ")}.`,
    inputSchema: {
      type: "object",
      properties: {
        file: { enum: Object.keys(memoryLimits) as MemoryFileName[] },
        old: { type: "string", description: "The text to replace, or empty to add at the end" },
        new: { type: "string", description: "The new text, or empty to remove the old one" },
      },
      required: ["file", "old", "new"],
      additionalProperties: false,
    } as const,
    risk: "safe",
    destructive: false,
    concurrency: "sequential",
    execute: async ({ file, old, new: added }, { ctx }) => {
      try {
        const diff = await changeMemoryFile(folder, { file, old, new: added });
        if (diff === "") return `${file} is unchanged.`;
        ctx.emitEvent(eventDraft("memory_write", { kind: "file", file, diff }));
        onChange();
        return `${file} is changed.`;
      } catch (error) {
        if (Fault.is(error)) return errorResult(error.message);
        throw error;
      }
    },
  });
}
