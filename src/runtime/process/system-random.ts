import type { Random } from "../../kernel/index.ts";

export const systemRandom: Random = { next: () => Math.random() };
