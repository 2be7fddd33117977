import { checkChoice, type EngineFactory } from "../../../kernel/index.ts";

/**
 * The engines of `reeve worker`, by the value of `--engine`. Each entry returns the factory of the engine, or `undefined` for
 * the default engine of the runtime. An engine that needs a package loads it in its entry.
 */
const engines = {
  local: async () => undefined,
} satisfies Record<string, () => Promise<EngineFactory | undefined>>;

type EngineName = keyof typeof engines;

const engineNames = Object.keys(engines) as readonly EngineName[];

/** Returns the factory of an engine. Throws `invalid_argument` if there is none of this name. */
export function engineOf(name: string): Promise<EngineFactory | undefined> {
  checkChoice("reeve worker", "--engine", name, engineNames);
  return engines[name as EngineName]();
}
