/* The shapes that the scripts hand to each other, for the type checker alone. */

/** A range of time in ns from the first moment of the trace.
 * @typedef {{t0: number, t1: number}} Range */

/** How far a key or the wheel moves, as the server says; `min_span` in ns.
 * @typedef {{zoom: number, pan: number, wheel: number, min_span: number}} Factors */

/** `name` and `part` are what it is called where it stands alone.
 * @typedef {{id: number, section: string, group: string, kind: string, name: string, part: string}} Lane */

/** A row of the timeline. It is hidden while a key that it is `under` is collapsed.
 * @typedef {object} Row
 * @property {"section" | "group" | "strip" | "lane"} kind
 * @property {number[]} lanes
 * @property {string[]} under
 * @property {string} group  that it stands in, or the section that it heads
 * @property {string} name
 * @property {string} [part]
 * @property {string} [note]
 * @property {string} key  what collapses or expands here; empty where nothing does
 * @property {boolean} [pinned] */

/** A row in its place: `top` counts from the top of its own list.
 * @typedef {Row & {top: number, height: number}} Laid */

/** @typedef {{pinned: Laid[], rows: Laid[], pinnedHeight: number, height: number}} Plan */

/** @typedef {{row: Laid, y: number}} Placed */

/** @typedef {{name: string, glyph: string, called: string, called_otherwise: string, grounds: [string, string], inks: [string, string], colour: string, cue: string, parts: number[], ink: string, rgb: number[]}} State */

/** @typedef {{key: string, severity: "error" | "warning" | "info", start: number | null, end: number | null, lane: number | null}} Finding */

/** @typedef {{keys: string[], action: string, says: string, group: string, section: string}} Key */
/** @typedef {[string, [string[], string][]]} HelpSection */

/** What stays the same for a page.
 * @typedef {object} Model
 * @property {string} name
 * @property {Lane[]} lanes
 * @property {Row[]} rows
 * @property {State[]} states
 * @property {Finding[]} findings
 * @property {number} length
 * @property {string[]} collapsed  at first
 * @property {string} colours  at first: by name or by state
 * @property {Key[]} keymap
 * @property {[string[], string][]} first_keys
 * @property {Factors} factors
 * @property {number | string} [revision]  of a recording that goes on
 * @property {boolean} [live]
 * @property {boolean} [checking]  the rules are running
 * @property {boolean} [has_clock]  or its times are an order alone
 * @property {boolean} [is_two]  traces, one on the other
 * @property {number} [recent]  ns that are looked at first where it goes on */

/** What is looked at: the range, the cursor (a time in a lane) and the span that is selected there.
 * @typedef {object} View
 * @property {number} t0
 * @property {number} t1
 * @property {number | null} lane
 * @property {number} at
 * @property {number[]} pin
 * @property {string[]} hide
 * @property {string[]} collapse
 * @property {[number, number] | null} mark
 * @property {number | null} begun
 * @property {number[]} lanes  of the mark, where they are not its section's
 * @property {string} colours
 * @property {Outline[]} outlines
 * @property {string | null} finding
 * @property {Hits | null} hits
 * @property {FlagAt[]} [flags]
 * @property {{place: string, was: string, line: string, new: string} | null} [flag]  where one is put now, the one that is there, what stands in the line at first, and in that of a new one
 * @property {[number, number] | null} [diverged]  when each of two traces differs first
 * @property {{start: number, end: number, label: string} | null} selection
 * @property {string[]} related
 * @property {[number, number] | null} during
 * @property {string} [search]
 * @property {string} [said]  what is selected, in words
 * @property {string} [tab] */

/** A flag: its name, its note, when it is, and in which lane.
 * @typedef {[string, string, number, number | null]} FlagAt */

/** An interval of a lane that stands out: lane, from when, until when, and why.
 * @typedef {[number, number, number, "preceding" | "following" | "path" | "gap" | "picked"]} Outline */

/** What is looked for: how many hits there are, and where, in percent of the trace.
 * @typedef {{told: string, places: number[], glyph?: string, go?: string, says?: string}} Hits */

/** `parts` has for each span its shares of what a split state is made of, in 255ths: of the spans of a lane that has such.
 * @typedef {{start: Float64Array, end: Float64Array, state: Uint8Array, parts?: Uint8Array, label: string[]}} Spans */

/** Times of a second trace that are `step` apart by its own clock, and where they lie on the first's.
 * @typedef {{step: number, last: number, at: number[], own: number[]}} Beside */

/** @typedef {{lane: number, low: number, high: number, unit: string, values: Float64Array}} Counter */

/** What the server has drawn of some lanes: spans where they are few, pixels where they are many.
 * @typedef {object} Picture
 * @property {number} t0
 * @property {number} t1
 * @property {number} width
 * @property {Map<number, number>} row
 * @property {number[]} dense
 * @property {Map<number, number>} place
 * @property {Map<number, [number, number][]>} signs  by lane the pixels that have the sign of a state
 * @property {Map<number, Spans>} sparse
 * @property {Map<number, Counter>} counters
 * @property {Beside | null} [beside]
 * @property {Uint8Array} state
 * @property {Uint8Array} density
 * @property {Strips} [image] */

/** Shared pixels, painted: where in what is drawn the strip of each lane is, and how many rows it has.
 * @typedef {{drawn: OffscreenCanvas, places: {top: number, tall: number}[]}} Strips */

/** What a picture is asked for: lanes in a window, in so many pixels, of a revision of the trace.
 * @typedef {object} Asked
 * @property {number} t0
 * @property {number} t1
 * @property {number} width
 * @property {number[]} lanes
 * @property {string[]} hide
 * @property {string | null} colours
 * @property {number | string} revision */

/** A picture as it comes.
 * @typedef {object} Answer
 * @property {number} t0
 * @property {number} t1
 * @property {number} width
 * @property {number[]} lanes
 * @property {number[]} dense
 * @property {Uint8Array} state
 * @property {Uint8Array} density
 * @property {number[]} marked  lanes that have rows of `mark`
 * @property {Uint8Array} mark
 * @property {{lane: number, start: Float64Array, end: Float64Array, state: Uint8Array, parts?: Uint8Array, label: number[]}[]} sparse
 * @property {string[]} labels
 * @property {Counter[]} counters
 * @property {Beside | null} [beside]
 * @property {string} position
 * @property {number | string} [revision] */

/** A span, shared pixels or a sample, whatever a lane shows at a time.
 * @typedef {{start: number, end: number, state: number, label: string} | {value: number, unit: string} | {state: number, share: number}} Shown */

/** What the mouse is over.
 * @typedef {{x: number, y: number, t: number, row: Laid | null, lane: Lane | null, shown: Shown | null}} Hover */

/**
 * What a frame shows; `xOf` gives the pixel of a time.
 * @typedef {object} Frame
 * @property {Model} model
 * @property {View} view
 * @property {Picture | null} picture
 * @property {Placed[]} placed
 * @property {Hover | null} hover
 * @property {[number, number] | null} sketched
 * @property {number[]} dragged  lanes over which a range is being marked
 * @property {Record<string, string>} colours
 * @property {number} width
 * @property {number} height
 * @property {(t: number) => number} xOf */

/** @typedef {{t: number, label: string}[]} Ticks */

/** @typedef {CanvasRenderingContext2D} Pen */

export {};
