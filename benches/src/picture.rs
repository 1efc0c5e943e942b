//! The picture of what a call costs: `docs/cost.svg`, in the look of the tree's other pictures.

use std::{error::Error, path::Path};

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

/// One measure, such as instructions: a group of bars for each case, a bar for each contender.
pub struct Panel {
    /// What is measured, with its unit.
    pub title: &'static str,
    /// A case's name, and the figures in the order of the contenders.
    pub groups: Vec<(&'static str, Vec<f64>)>,
}

const WIDTH: i32 = 900;
const FONT: &str = "sans-serif";
const INK: RGBColor = RGBColor(60, 60, 60);
/// Told apart without colour too: each bar has its name. The first is the one that is looked at.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(204, 121, 167), RGBColor(130, 130, 130)];

const HEAD: i32 = 46;
const PANEL_HEAD: i32 = 34;
const GROUP_HEAD: i32 = 24;
const BAR: i32 = 24;
const GAP: i32 = 12;
const MARGIN: i32 = 20;
/// Where bars begin, and what is kept free after the longest for its figure.
const NAMES: i32 = 125;
const FIGURE: i32 = 55;

type Painted = Result<(), Box<dyn Error>>;

/// Draws the panels side by side.
pub fn draw(path: &Path, title: &str, names: &[&str], panels: &[Panel]) -> Painted {
    let most = panels.iter().map(|panel| panel.groups.len()).max().unwrap_or(0) as i32;
    let height = HEAD + PANEL_HEAD + most * (GROUP_HEAD + names.len() as i32 * BAR + GAP) + GAP;
    let root = SVGBackend::new(path, (WIDTH as u32, height as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(title, (MARGIN, 14), text(20, HPos::Left, VPos::Top)))?;
    let width = WIDTH / panels.len() as i32;
    for (index, panel) in panels.iter().enumerate() {
        let left = index as i32 * width + MARGIN;
        let scale = Scale { left: left + NAMES, room: width - 2 * MARGIN - NAMES - FIGURE, most: panel.most() };
        let mut top = HEAD;
        root.draw(&Text::new(panel.title, (left, top + 8), text(17, HPos::Left, VPos::Top)))?;
        top += PANEL_HEAD;
        for (case, figures) in &panel.groups {
            root.draw(&Text::new(*case, (scale.left, top + GROUP_HEAD / 2), text(14, HPos::Left, VPos::Center)))?;
            top += GROUP_HEAD;
            let from = top;
            for ((name, figure), colour) in names.iter().zip(figures).zip(COLOURS) {
                let middle = top + BAR / 2;
                let until = scale.x(*figure);
                root.draw(&Text::new(*name, (scale.left - 8, middle), text(14, HPos::Right, VPos::Center)))?;
                root.draw(&Rectangle::new([(scale.left, top + 3), (until, top + BAR - 3)], colour.filled()))?;
                let label = Text::new(format!("{figure:.0}"), (until + 6, middle), text(14, HPos::Left, VPos::Center));
                root.draw(&label)?;
                top += BAR;
            }
            root.draw(&PathElement::new([(scale.left, from), (scale.left, top)], INK))?;
            top += GAP;
        }
    }
    root.present()?;
    Ok(())
}

impl Panel {
    fn most(&self) -> f64 {
        self.groups.iter().flat_map(|(_, figures)| figures).copied().fold(1.0, f64::max)
    }
}

struct Scale {
    left: i32,
    room: i32,
    most: f64,
}

impl Scale {
    fn x(&self, figure: f64) -> i32 {
        self.left + (figure.max(0.0) / self.most * f64::from(self.room)).round() as i32
    }
}

fn text(size: i32, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    TextStyle::from((FONT, size)).color(&INK).pos(Pos::new(horizontal, vertical))
}
