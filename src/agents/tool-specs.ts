import type { Tool, ToolSpec } from "../kernel/index.ts";
import { specOf } from "./invocation-dependencies.ts";

/** What a model is told of an agent's tools: one and the same list for as long as it would say the same. */
export class ToolSpecs {
  #specs: readonly ToolSpec[];

  constructor(tools: readonly Tool[]) {
    this.#specs = specsOf(tools);
  }

  of(tools: readonly Tool[]): readonly ToolSpec[] {
    const isSame =
      tools.length === this.#specs.length && tools.every((tool, index) => this.#says(tool, index));
    if (!isSame) this.#specs = specsOf(tools);
    return this.#specs;
  }

  #says({ name, description, inputSchema }: Tool, index: number): boolean {
    const spec = this.#specs[index];
    return spec?.name === name && spec.description === description && spec.inputSchema === inputSchema;
  }
}

/** Frozen, as a turn has them (J1): what is compiled for the list of a turn before is right for the first. */
function specsOf(tools: readonly Tool[]): readonly ToolSpec[] {
  return Object.freeze(tools.map((tool) => Object.freeze(specOf(tool))));
}
