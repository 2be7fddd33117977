import type { Tool, ToolSpec } from "../kernel/index.ts";
import { specOf } from "./invocation-dependencies.ts";

/** What a model is told of an agent's tools: one and the same list for as long as it would say the same. */
export class ToolSpecs {
  #specs: readonly ToolSpec[] = [];

  of(tools: readonly Tool[]): readonly ToolSpec[] {
    const isSame =
      tools.length === this.#specs.length && tools.every((tool, index) => this.#says(tool, index));
    if (!isSame) this.#specs = tools.map(specOf);
    return this.#specs;
  }

  #says({ name, description, inputSchema }: Tool, index: number): boolean {
    const spec = this.#specs[index];
    return spec?.name === name && spec.description === description && spec.inputSchema === inputSchema;
  }
}
