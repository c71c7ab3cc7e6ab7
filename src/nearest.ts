/** "Did you mean": the candidates that a mistyped word is closest to. */

/**
 * At most `limit` of `candidates`, the closest to `word` first; those of which more than `share` of
 * the letters differ are left out. A word that begins a candidate counts as close.
 */
export function nearest(
  word: string,
  candidates: readonly string[],
  limit = 3,
  share = 1 / 2,
): string[] {
  const typed = word.toLowerCase();
  return candidates
    .map((candidate) => ({ candidate, distance: distanceFrom(typed, candidate.toLowerCase()) }))
    .filter(({ distance }) => typed !== "" && distance <= typed.length * share)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, limit)
    .map(({ candidate }) => candidate);
}

/** A prefix of a long candidate is compared with as much of it as was typed. */
function distanceFrom(typed: string, candidate: string): number {
  const whole = editDistance(typed, candidate);
  if (candidate.length <= typed.length) return whole;
  return Math.min(whole, editDistance(typed, candidate.slice(0, typed.length)));
}

/** Levenshtein's distance: insertions, deletions and replacements, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
