/** How much a model reasons before it answers. Adapters of models translate the level for each provider. */
export const thinkingLevels = Object.freeze(["off", "minimal", "low", "medium", "high"] as const);

/** How much a model reasons before it answers. */
export type ThinkingLevel = (typeof thinkingLevels)[number];
