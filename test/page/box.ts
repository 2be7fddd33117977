/** Where an element is drawn, in pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Whether a visible box is inside another one. */
export function isWithin(inner: Box | null, outer: Box | null): boolean {
  return (
    inner !== null &&
    outer !== null &&
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}
