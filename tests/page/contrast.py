"""How well the text of a page stands out, as WCAG counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

CONTRAST_AA = 4.5

_WEAKEST = """() => {
  const channels = color => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(value => {
      value /= 255;
      return value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4;
    });
    return .2126 * x + .7152 * y + .0722 * z;
  };
  const ground = element => {
    const color = channels(getComputedStyle(element).backgroundColor);
    return color.length === 4 && color[3] === 0 ? ground(element.parentElement) : color;
  };
  const shown = [...document.body.querySelectorAll('*')].filter(element =>
    element.checkVisibility() &&
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim() !== ''));
  return shown.map(element => {
    const ink = luminance(channels(getComputedStyle(element).color));
    const paper = luminance(ground(element));
    return [(Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05), element.textContent];
  }).sort((one, other) => one[0] - other[0])[0];
}"""


def weakest_contrast(page: Page) -> tuple[float, str]:
    """Return the text that stands out least, and how much it does."""
    ratio, text = page.evaluate(_WEAKEST)
    return ratio, text
