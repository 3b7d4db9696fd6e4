import { expect } from 'chai';
import {
  absoluteTime,
  countOf,
  durationOf,
  jsonFileName,
  relativeTime,
  shortAmount,
  shortened,
  sizeOf,
} from '../../console/text/words';
import { beginningOf, escapedText, segmentsOf } from '../../console/text/visible-characters';

describe("texts on the console's page", () => {
  it('shortens long hex in the middle, and nothing that would hardly be shorter', () => {
    expect(shortened('0x70997970C51812dc3A010C7d01b50e0d17dc79C8')).to.equal('0x7099…79C8');
    expect(shortened('0x70997079C8')).to.equal('0x70997079C8');
    expect(shortened('0123456789abcdef', { start: 4, end: 4 })).to.equal('0123…cdef');
  });

  it('shows control characters and direction marks as escapes, apart from the text around them', () => {
    expect(segmentsOf('in\u202evoice\u0000\u200b')).to.deep.equal([
      { text: 'in', isEscape: false },
      { text: '\\u202e', isEscape: true },
      { text: 'voice', isEscape: false },
      { text: '\\u0000\\u200b', isEscape: true },
    ]);
    expect(segmentsOf('')).to.deep.equal([]);
    expect(segmentsOf('<script>')).to.deep.equal([{ text: '<script>', isEscape: false }]);
  });

  it('escapes characters outside the basic plane and lone surrogates, and leaves emoji', () => {
    expect(escapedText('\u{e0041}')).to.equal('\\udb40\\udc41');
    expect(escapedText('\ud800x')).to.equal('\\ud800x');
    expect(escapedText('🚢')).to.equal('🚢');
  });

  it('escapes blank characters, and marks after the fourth of a letter', () => {
    expect(escapedText('a\u3164b\u2800c')).to.equal('a\\u3164b\\u2800c');
    const accent = '\u0301';
    expect(escapedText(`e${accent.repeat(4)}f`)).to.equal(`e${accent.repeat(4)}f`);
    expect(escapedText(`e${accent.repeat(6)}f`)).to.equal(`e${accent.repeat(4)}\\u0301\\u0301f`);
  });

  it('keeps line feeds and tabs only where a text has several lines', () => {
    expect(escapedText('one\n\ttwo')).to.equal('one\\u000a\\u0009two');
    expect(segmentsOf('one\n\ttwo', { keepLines: true })).to.deep.equal([
      { text: 'one\n\ttwo', isEscape: false },
    ]);
  });

  it('cuts no character in two', () => {
    expect(beginningOf('ab🚢', 3)).to.equal('ab');
    expect(beginningOf('ab🚢', 4)).to.equal('ab🚢');
  });

  it('tells times from now, in both directions', () => {
    const now = 1_750_000_000_000;
    expect(relativeTime(now - 1999, now)).to.equal('now');
    expect(relativeTime(now - 5_999, now)).to.equal('5 seconds ago');
    expect(relativeTime(now + 61_000, now)).to.equal('in 1 minute');
    expect(relativeTime(now - 3 * 3_600_000, now)).to.equal('3 hours ago');
    expect(relativeTime(now - 49 * 3_600_000, now)).to.equal('2 days ago');
    expect(absoluteTime(now)).to.equal('2025-06-15 15:06:40 UTC');
    expect(absoluteTime(Number.NaN)).to.equal('NaN');
    expect([0.4, 125].map(durationOf)).to.deep.equal(['less than a second', '2 minutes']);
    expect([1, 1234].map((count) => countOf(count, 'attempt'))).to.deep.equal([
      '1 attempt',
      '1,234 attempts',
    ]);
  });

  it('names sizes in units of 1024, and cuts amounts behind the point unless nothing would be left', () => {
    const sizes = [0, 1023, 1536, 50 * 1024 * 1024].map(sizeOf);
    expect(sizes).to.deep.equal(['0 bytes', '1023 bytes', '1.5 kB', '50.0 MB']);
    const amounts = ['9999.981045794969660504', '12', '0.00001', 'not known'].map(shortAmount);
    expect(amounts).to.deep.equal(['9999.9810', '12', '0.00001', 'not known']);
  });

  it('makes a file name of any Bill of Lading number', () => {
    expect(jsonFileName('MAEU240718305')).to.equal('MAEU240718305.json');
    expect(jsonFileName('../../etc/passwd')).to.equal('etc_passwd.json');
    expect(jsonFileName('a\u202ejson.exe<script>')).to.equal('a_json.exe_script_.json');
    expect(jsonFileName('\u0000')).to.equal('document.json');
    expect(jsonFileName('x'.repeat(10_000))).to.have.length(65);
  });
});
