export { listedModelNames, priceCatalog } from "./prices/price-catalog.ts";
export type { PriceOverride } from "./prices/price-override.ts";
export type { AiSdkModel } from "./models/ai-sdk-model.ts";
export { fallback } from "./models/fallback.ts";
export { withSettings } from "./models/model-settings.ts";
export {
  findNamedModel,
  installedAddress,
  lackOfModel,
  namedModel,
  type ModelName,
  providerFacts,
  type ProviderFacts,
} from "./models/named-model.ts";
export { providerPackages } from "./models/provider-directory.ts";
export { route } from "./models/route.ts";
export { toModel, type ModelLike } from "./models/to-model.ts";
export { Leftovers, type Leftover } from "./worktrees/leftovers.ts";
export {
  toIsolation,
  worktreeIsolation,
  type IsolationOption,
  type WorktreeOptions,
} from "./worktrees/worktree-isolation.ts";
export { openTelemetry } from "./telemetry/open-telemetry.ts";
export { JsonSchemaCheck } from "./tools/json-schema-check.ts";
export { SchemaReader } from "./tools/schema-reader.ts";
export type { ToolBody, ToolProgress } from "./tools/tool-body.ts";
export { errorResult, fileResult, imageResult, textResult } from "./tools/tool-result.ts";
export { tool, type ClientToolOptions, type ToolOptions } from "./tools/tool.ts";
export { imageType } from "./files/file-kind.ts";
export { restoreFiles, type RestoreState } from "./files/restore-files.ts";
