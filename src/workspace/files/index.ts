export { hiredProgram, isAgentName, readAgentFile, type AgentFile } from "./agent-file.ts";
export { ownToolName, readAllowedTool } from "./allowed-tools.ts";
export { isBelow } from "./text/bounded-file.ts";
export { makeFolder } from "./text/make-folder.ts";
export {
  changedWords,
  loadWorkspace,
  projectCoverage,
  type LoadWorkspaceOptions,
  type LoadedWorkspace,
} from "./load.ts";
export { readInstructions, saveInstructions, type SavedInstructions } from "./saved-instructions.ts";
export type { Origin, SourceFile } from "./source-file.ts";
export { listMcpEntries, readMcpFiles, type McpEntry } from "./mcp-file.ts";
export { changeMemoryFile, memoryLimits, type MemoryFileName } from "./memory/memory-file.ts";
export { commonJsAdvice, isCommonJs } from "./modules.ts";
export { loadModule, shareReeve } from "./modules.ts";
export { Notices, type WorkspaceNotice } from "./notices.ts";
export { installedPackage, type InstalledPackage } from "./packages.ts";
export type { Places, Profile } from "./places.ts";
export { docsPrefix, loadMaterial } from "./prompt/load-material.ts";
export { memoryFolder, PromptCache, promptCaches } from "./prompt/prompt-cache.ts";
export type { PromptMaterial } from "./prompt/system-prompt.ts";
export { agentFields, sharedFields, type AgentValues } from "./settings/agent-fields.ts";
export { combineValues, freeValues, providerOf } from "./settings/combine-settings.ts";
export { explainSettings, type ExplainedSetting, type SettingPlace } from "./settings/explain-settings.ts";
export { checkSettings } from "./settings/read-settings.ts";
export type { ChannelSettings, NotificationSettings, Settings } from "./settings/settings-fields.ts";
export { readDocument, type KnowledgeDocument } from "./skills/knowledge.ts";
export { expandSlash } from "./skills/expand-slash.ts";
export { type PromptTemplate } from "./skills/prompt-templates.ts";
export { readSkillFile, readSkills, type FileSkill } from "./skills/read-skills.ts";
export { Coverage, findPackage } from "./trust/coverage.ts";
export { textHashes } from "./trust/text-hashes.ts";
export { tempFolder } from "./temp-folder.ts";
export { StoreList } from "./trust/store-list.ts";
export { TrustStore, type TrustedProject } from "./trust/trust-store.ts";
