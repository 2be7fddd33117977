import { alone } from "./alone.ts";
import { flows } from "./flows.ts";
import { teams } from "./teams.ts";
import type { Thinker } from "./thinker.ts";

/** Every way to think there is. */
export const thinkers: Readonly<Record<string, Thinker>> = { ...alone, ...teams, ...flows };
