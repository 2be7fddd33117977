export { BrowserSession, type BrowserOptions, type BrowserState, type Tab } from "./browser-session.ts";
export { browserTools } from "./browser-tools.ts";
export type { LaunchOptions } from "./launch-chromium.ts";
