/** Reads a setting of this browser. `null` if it was never set, or the browser keeps none. */
export function kept(name: string): string | null {
  try {
    return localStorage.getItem(`reeve.${name}`);
  } catch {
    return null;
  }
}

/** Keeps a setting in this browser. A browser that refuses keeps it until the page is closed. */
export function keep(name: string, value: string): void {
  try {
    localStorage.setItem(`reeve.${name}`, value);
  } catch {
    return;
  }
}
