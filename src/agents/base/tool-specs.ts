import type { Tool, ToolSpec } from "../../kernel/index.ts";
import { checkTool, placeIn } from "./part-check.ts";

/**
 * The tool specifications that the model receives. The same array is returned until the tools change. If two tools have
 * the same name, the model receives the first one, which is also the one that is called, because providers refuse
 * duplicate names.
 */
export class ToolSpecs {
  #listed: readonly ToolSpec[];
  #sent: readonly ToolSpec[];

  constructor(tools: readonly Tool[]) {
    this.#listed = specsOf(tools);
    this.#sent = firstOfEach(this.#listed);
  }

  of(tools: readonly Tool[]): readonly ToolSpec[] {
    const isSame =
      tools.length === this.#listed.length && tools.every((tool, index) => this.#matches(tool, index));
    if (!isSame) {
      this.#listed = specsOf(tools);
      this.#sent = firstOfEach(this.#listed);
    }
    return this.#sent;
  }

  #matches({ name, description, inputSchema, foundBy, provider }: Tool, index: number): boolean {
    const spec = this.#listed[index];
    return (
      spec?.name === name &&
      spec.description === description &&
      spec.inputSchema === inputSchema &&
      spec.foundBy === foundBy &&
      spec.provider === provider
    );
  }
}

export function specOf({ name, description, inputSchema, foundBy, provider }: Tool): ToolSpec {
  const spec: ToolSpec =
    provider === undefined
      ? { name, description, inputSchema }
      : { name, description, inputSchema, provider };
  return foundBy === undefined ? spec : { ...spec, foundBy };
}

/**
 * Creates the frozen specifications of a list of tools (J1). Throws for a tool that could not be called. They are
 * frozen like those of a turn, so that V8 does not recompile code that was compiled for the list of an earlier
 * turn.
 */
function specsOf(tools: readonly Tool[]): readonly ToolSpec[] {
  for (const [index, tool] of tools.entries()) checkTool(tool, placeIn(index));
  return Object.freeze(tools.map((tool) => Object.freeze(specOf(tool))));
}

function firstOfEach(specs: readonly ToolSpec[]): readonly ToolSpec[] {
  const names = new Set(specs.map(({ name }) => name));
  if (names.size === specs.length) return specs;
  return Object.freeze(specs.filter(({ name }) => names.delete(name)));
}
