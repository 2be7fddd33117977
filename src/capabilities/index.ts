export type { AiSdkModel } from "./models/ai-sdk-model.ts";
export { fallback, type FallbackOptions } from "./models/fallback.ts";
export { withSettings, type ModelSettings } from "./models/model-settings.ts";
export { namedModel, type ModelName, type NamedModelOptions } from "./models/named-model.ts";
export { route, type RouteOptions } from "./models/route.ts";
export { toModel, type ModelLike } from "./models/to-model.ts";
export { openTelemetry, type OpenTelemetryOptions } from "./telemetry/open-telemetry.ts";
export { jsonSchemaCheck, schemaReader } from "./tools/schema-reader.ts";
export { tool, type ToolOptions, type ToolReturn } from "./tools/tool.ts";
