//! Members in tuples, arrays and vectors.

#[cfg(feature = "std")]
use std::vec::Vec;

use super::held::Held;
use super::members::{DebtMembers, Members, ReserveMembers, Visitor};

const fn plus(some: Option<usize>, more: Option<usize>) -> Option<usize> {
    match (some, more) {
        (Some(some), Some(more)) => Some(some.saturating_add(more)),
        _ => None,
    }
}

const fn times(n: usize, each: Option<usize>) -> Option<usize> {
    match each {
        Some(each) => Some(n.saturating_mul(each)),
        None => None,
    }
}

/// Returns which element has the member with this number, and its number there.
#[inline(always)]
fn place_of(index: usize, counts: impl IntoIterator<Item = usize>) -> Option<(usize, usize)> {
    let mut index = index;
    for (place, count) in counts.into_iter().enumerate() {
        if index < count {
            return Some((place, index));
        }
        index -= count;
    }
    None
}

/// Implements [`Members`] for tuples.
macro_rules! tuple {
    ($($name:ident $field:tt),+) => {
        impl<Clk, $($name: Members<Clk>),+> Members<Clk> for ($($name,)+) {
            type Grants = ($($name::Grants,)+);
            const COUNT: Option<usize> = {
                let mut all = Some(0);
                $(all = plus(all, $name::COUNT);)+
                all
            };
            const KINDS: usize = 0 $(+ $name::KINDS)+;

            #[inline(always)]
            fn count(&self) -> usize {
                0 $(+ self.$field.count())+
            }

            #[inline(always)]
            fn visit<V: Visitor<Clk>>(&self, index: usize, visitor: V) -> Option<V::Output> {
                let mut index = index;
                $(
                    let count = self.$field.count();
                    if index < count {
                        return self.$field.visit(index, visitor);
                    }
                    index -= count;
                )+
                let _ = index;
                None
            }

            #[inline(always)]
            fn no_grants(&self) -> Self::Grants {
                ($(self.$field.no_grants(),)+)
            }

            #[inline(always)]
            fn grant_mut<'g>(
                &self,
                grants: &'g mut Self::Grants,
                index: usize,
            ) -> Option<&'g mut Option<Held>> {
                let mut index = index;
                $(
                    let count = self.$field.count();
                    if index < count {
                        return self.$field.grant_mut(&mut grants.$field, index);
                    }
                    index -= count;
                )+
                let _ = index;
                None
            }

            #[inline(always)]
            fn grant<'g>(&self, grants: &'g Self::Grants, index: usize) -> Option<&'g Held> {
                let (place, inner) = place_of(index, [$(self.$field.count()),+])?;
                match place {
                    $($field => self.$field.grant(&grants.$field, inner),)+
                    _ => None,
                }
            }
        }

        impl<Clk, $($name: DebtMembers<Clk>),+> DebtMembers<Clk> for ($($name,)+) {}

        impl<Clk, $($name: ReserveMembers<Clk>),+> ReserveMembers<Clk> for ($($name,)+) {}
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, D 2);
tuple!(A 0, B 1, D 2, E 3);
tuple!(A 0, B 1, D 2, E 3, F 4);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6);
tuple!(A 0, B 1, D 2, E 3, F 4, G 5, H 6, I 7);

/// Implements [`Members`] for many members of one type.
macro_rules! list {
    ([$($parameters:tt)*] $list:ty, $grants:ty, $count:expr, |$this:ident| $empty:expr) => {
        impl<$($parameters)*> Members<C> for $list {
            type Grants = $grants;
            const COUNT: Option<usize> = $count;
            const KINDS: usize = M::KINDS;

            #[inline(always)]
            fn count(&self) -> usize {
                match M::COUNT {
                    Some(each) => each * self.len(),
                    None => self.iter().map(Members::count).sum(),
                }
            }

            #[inline(always)]
            fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
                let (place, inner) = find(self, index)?;
                self.get(place)?.visit(inner, visitor)
            }

            #[inline(always)]
            fn no_grants(&self) -> Self::Grants {
                let $this = self;
                $empty
            }

            #[inline(always)]
            fn grant_mut<'g>(
                &self,
                grants: &'g mut Self::Grants,
                index: usize,
            ) -> Option<&'g mut Option<Held>> {
                let (place, inner) = find(self, index)?;
                self.get(place)?.grant_mut(grants.get_mut(place)?, inner)
            }

            #[inline(always)]
            fn grant<'g>(&self, grants: &'g Self::Grants, index: usize) -> Option<&'g Held> {
                let (place, inner) = find(self, index)?;
                self.get(place)?.grant(grants.get(place)?, inner)
            }
        }
    };
}

/// Returns which element of a list has this member, and its number there.
#[inline(always)]
fn find<C, M: Members<C>>(list: &[M], index: usize) -> Option<(usize, usize)> {
    if let Some(each @ 1..) = M::COUNT {
        return Some((index / each, index % each));
    }
    place_of(index, list.iter().map(Members::count))
}

list!([C, M: Members<C>, const N: usize] [M; N], [M::Grants; N], times(N, M::COUNT), |this| {
    this.each_ref().map(Members::no_grants)
});
impl<C, M: DebtMembers<C>, const N: usize> DebtMembers<C> for [M; N] {}
impl<C, M: ReserveMembers<C>, const N: usize> ReserveMembers<C> for [M; N] {}
#[cfg(feature = "std")]
list!([C, M: Members<C>] Vec<M>, Vec<M::Grants>, None, |this| {
    this.iter().map(Members::no_grants).collect()
});
#[cfg(feature = "std")]
impl<C, M: DebtMembers<C>> DebtMembers<C> for Vec<M> {}
#[cfg(feature = "std")]
impl<C, M: ReserveMembers<C>> ReserveMembers<C> for Vec<M> {}
