export {
  restoreFiles,
  type RestoredFile,
  type RestoreFilesOptions,
  type RestoreState,
} from "../files/restore-files.ts";
export { pathRule, type PathRuleOptions } from "../files/path-rule.ts";
export type { SandboxLimits, SandboxMode, SandboxPolicy, SandboxReport } from "../sandbox/sandbox-policy.ts";
export type { AddressCheckOptions, HostAddress, Resolver } from "../web/address-check.ts";
export { askHumanTool, type AskHumanToolOptions } from "./ask-human.ts";
export { bashTool, type BashToolOptions } from "./bash.ts";
export { editTool, type EditToolOptions } from "./edit.ts";
export { fetchTool, type FetchToolOptions } from "./fetch.ts";
export { fileTools, type FileToolsOptions } from "./file-tools.ts";
export { findTool, type FindToolOptions } from "./find.ts";
export { grepTool, type GrepToolOptions } from "./grep.ts";
export { lsTool, type LsToolOptions } from "./ls.ts";
export { providerTool, type AiSdkProviderTool, type ProviderToolOptions } from "./provider-tool.ts";
export { readTool, type ReadToolOptions } from "./read.ts";
export { writeTool, type WriteToolOptions } from "./write.ts";
export { memoryTools } from "./memory.ts";
export { skillTool, type SkillToolOptions } from "./skill.ts";
export { spawnAgentTool, type SpawnableAgent, type SpawnAgentToolOptions } from "./spawn-agent.ts";
export { todoTool, type TodoToolOptions } from "./todo.ts";
export { toolSearch, type ToolSearchOptions } from "./tool-search.ts";
export {
  webSearchTool,
  type SearchProvider,
  type SearchTemplate,
  type WebSearchToolOptions,
} from "./web-search.ts";
