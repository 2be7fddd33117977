export {
  DesktopSession,
  type ClickOptions,
  type DesktopOptions,
  type MouseButton,
  type ScrollDirection,
} from "./desktop-session.ts";
export type { DesktopState, Point } from "./desktop-state.ts";
export { desktopTools } from "./desktop-tools.ts";
export type { Area } from "./x11/screenshot.ts";
export type { DesktopWindow } from "./x11/windows.ts";
