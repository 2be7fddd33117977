import type { Tool, ToolSpec } from "../kernel/index.ts";
import { specOf } from "./invocation-dependencies.ts";

/**
 * What a model is told of an agent's tools: one and the same list for as long as it would say the same. Of several of one name, which a list
 * that changes may come to have, it is told of the first, which is the one that is called; providers refuse a name that is there twice.
 */
export class ToolSpecs {
  #listed: readonly ToolSpec[];
  #told: readonly ToolSpec[];

  constructor(tools: readonly Tool[]) {
    this.#listed = specsOf(tools);
    this.#told = firstOfEach(this.#listed);
  }

  of(tools: readonly Tool[]): readonly ToolSpec[] {
    const isSame =
      tools.length === this.#listed.length && tools.every((tool, index) => this.#says(tool, index));
    if (!isSame) {
      this.#listed = specsOf(tools);
      this.#told = firstOfEach(this.#listed);
    }
    return this.#told;
  }

  #says({ name, description, inputSchema }: Tool, index: number): boolean {
    const spec = this.#listed[index];
    return spec?.name === name && spec.description === description && spec.inputSchema === inputSchema;
  }
}

/** Frozen, as a turn has them (J1): what is compiled for the list of a turn before is right for the first. */
function specsOf(tools: readonly Tool[]): readonly ToolSpec[] {
  return Object.freeze(tools.map((tool) => Object.freeze(specOf(tool))));
}

function firstOfEach(specs: readonly ToolSpec[]): readonly ToolSpec[] {
  const names = new Set(specs.map(({ name }) => name));
  if (names.size === specs.length) return specs;
  return Object.freeze(specs.filter(({ name }) => names.delete(name)));
}
